// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestTheEndOfALogIsItsLastWholeLines(t *testing.T) {
	for sentence, c := range map[string]struct{ log, want string }{
		"a log below the limit is whole":               {"one\ntwo\n", "one\ntwo\n"},
		"an empty log is empty":                        {"", ""},
		"the first lines of a long log are left out":   {"first line\nsecond\nthird\n", "third\n"},
		"a log of several times the limit":             {strings.Repeat("one line\n", 1000) + "last\n", "last\n"},
		"a line above the limit is left out":           {"one\n" + strings.Repeat("x", 100), ""},
		"a last line without an end of line is a line": {"first line\nlast", "last"},
	} {
		for _, reader := range []io.Reader{strings.NewReader(c.log), iotest.OneByteReader(strings.NewReader(c.log))} {
			if found, err := end(reader, 10); err != nil || string(found) != c.want {
				t.Errorf("%s: found %q, %v, expected %q", sentence, found, err, c.want)
			}
		}
	}
	broken := errors.New("the connection broke")
	if _, err := end(io.MultiReader(strings.NewReader("one\n"), iotest.ErrReader(broken)), 10); !errors.Is(err, broken) {
		t.Errorf("found the error %v, expected %v", err, broken)
	}
}

func TestALogHasNoValueOfAVariableAndNoArgumentThatMayBeSecret(t *testing.T) {
	containers := []corev1.Container{
		{Name: "operator", Args: []string{"--log-level=warning", "--token=s3cret-token", "--password", "s3cret-pass", "leader-elect"}, Env: []corev1.EnvVar{
			{Name: "PROXY", Value: `http://me:s3"cret\%zz@proxy`}, {Name: "PART", Value: "s3cret"}, {Name: "SHORT", Value: "true"}, {Name: "EMPTY"},
		}},
		{Name: "sidecar", Env: []corev1.EnvVar{{Name: "OTHER", Value: "not of the operator"}}},
	}
	log := `operator: unexpected argument "s3cret-pass"
panic: flag --token has s3cret-token, --log-level has warning
invalid proxy address "http://me:s3\"cret\\%zz@proxy"
{"msg":"failed","error":"invalid proxy address \"http://me:s3\\\"cret\\\\%zz@proxy\""}
true: not of the operator, s3cret
`
	want := `operator: unexpected argument "(an argument was left out)"
panic: flag --token has (an argument was left out), --log-level has warning
invalid proxy address "(the value of PROXY was left out)"
{"msg":"failed","error":"invalid proxy address \"(the value of PROXY was left out)\""}
true: not of the operator, (the value of PART was left out)
`
	if found := redact(log, containers); found != want {
		t.Errorf("found\n%s\nexpected\n%s", found, want)
	}
}

func TestNoPartOfAPrivateKeyIsInAFile(t *testing.T) {
	const body = "MC4CAQAwBQYDK2VwBCIEIPlantedPlantedPlantedPlantedPlantedPlantedPlan\n"
	for sentence, c := range map[string]struct{ content, want string }{
		"a key between lines":      {"one\n-----BEGIN PRIVATE KEY-----\n" + body + "-----END PRIVATE KEY-----\ntwo\n", "one\n" + keyLeftOut + "\ntwo\n"},
		"a key that ends the file": {"one\n-----BEGIN EC PRIVATE KEY-----\n" + body, "one\n" + keyLeftOut},
		"a key without its begin":  {body + body + "-----END PRIVATE KEY-----\ntwo\n", keyLeftOut + "\ntwo\n"},
		"a key without its begin, with times": {
			"2026-11-26T16:04:11Z " + body + "2026-11-26T16:04:11Z -----END RSA PRIVATE KEY-----\n2026-11-26T16:04:11Z two\n",
			keyLeftOut + "\n2026-11-26T16:04:11Z two\n",
		},
		"lines before a key in a string": {"one line\n" + `{"error":"MC4CAQAwBQYDK2Vw\n-----END PRIVATE KEY-----\n"}` + "\n", "one line\n" + keyLeftOut + `\n"}` + "\n"},
		"a certificate":                  {"-----BEGIN CERTIFICATE-----\n" + body + "-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\n" + body + "-----END CERTIFICATE-----\n"},
	} {
		var written bytes.Buffer
		a := newArchive(&written, time.Unix(0, 0))
		if err := errors.Join(a.text("file", c.content), a.close("")); err != nil {
			t.Fatal(err)
		}
		plain, err := gzip.NewReader(&written)
		if err != nil {
			t.Fatal(err)
		}
		files := tar.NewReader(plain)
		if _, err := files.Next(); err != nil {
			t.Fatal(err)
		}
		if found, err := io.ReadAll(files); err != nil || string(found) != c.want {
			t.Errorf("%s: found %q, %v, expected %q", sentence, found, err, c.want)
		}
	}
}
