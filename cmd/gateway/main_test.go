// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func noVariables(string) (string, bool) { return "", false }

func TestHelpNamesEveryFlag(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, noVariables, &stdout, &stderr); code != program.ExitOK || stderr.Len() > 0 {
		t.Fatalf("exit code %d, %s", code, stderr.String())
	}
	(&config{}).flags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(stdout.String(), "--"+flag.Name+" ") {
			t.Errorf("--%s is not in the help:\n%s", flag.Name, stdout.String())
		}
	})
}

// public returns the text of a public key that is made of one byte.
func public(b byte) string {
	return signed.FormatKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize)).Public().(ed25519.PublicKey))
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAuthoritiesInAFileWithAByteOrderMarkAreTrusted(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	found, err := readAuthorities(write(t, filepath.Join(t.TempDir(), "ca.crt"), "\ufeff"+string(text)))
	if err != nil {
		t.Fatal(err)
	}
	want := x509.NewCertPool()
	if want.AddCert(server.Certificate()); !found.Equal(want) {
		t.Error("the authorities are not those of the file")
	}
}

func TestAWrongValueIsOneClearSentence(t *testing.T) {
	dir := t.TempDir()
	keys := write(t, filepath.Join(dir, "keys"), public(1)+"\n"+public(2)+","+public(3)+"\n")
	secret := write(t, filepath.Join(dir, "secret"), public(1)+"\nhunter2\n")
	twice := write(t, filepath.Join(dir, "twice"), public(1)+"\n"+public(1)+"\n")
	empty := write(t, filepath.Join(dir, "empty"), "\n")
	good := []string{"--certificate-dir=/certificates", "--trusted-keys-file=" + keys, "--operator-namespace=crypto-broker-system"}
	if _, err := parse(good, noVariables); err != nil {
		t.Fatalf("good flags: %v", err)
	}
	if found, err := readTrustedKeys(keys); err != nil || len(found) != 3 {
		t.Errorf("found %d keys, error %v, want 3", len(found), err)
	}
	for sentence, test := range map[string]struct {
		flag string
		want string
	}{
		"a flag that does not exist":     {"--profiles", "unknown flag: --profiles"},
		"an argument":                    {"start", `unexpected argument "start"`},
		"an address without a port":      {"--bind-address=8443", `--bind-address is "8443", expected an address with a port`},
		"a status address without one":   {"--status-bind-address=x", `--status-bind-address is "x", expected an address with a port such as ":8081", or 0 for none`},
		"no certificate":                 {"--certificate-dir=", "expected the directory of tls.crt and tls.key"},
		"no audience":                    {"--audience=", "expected the audience of the tokens of pods"},
		"a namespace that cannot be one": {"--operator-namespace=A_b", `--operator-namespace is "A_b", expected the name of the operator's namespace`},
		"a delay in the past":            {"--shutdown-delay=-1s", `--shutdown-delay is "-1s", expected 0s or more`},
		"another log level":              {"--log-level=loud", `--log-level is "loud", expected debug, info, warn or error`},
		"no keys to trust":               {"--trusted-keys-file=", "expected the file with the operator's public keys"},
		"a file that is not there":       {"--trusted-keys-file=" + dir + "/gone", "no such file"},
		"a text that is no key":          {"--trusted-keys-file=" + secret, "the key number 2 of " + secret},
		"a key twice":                    {"--trusted-keys-file=" + twice, "twice, expected each once"},
		"authorities that are not there": {"--broker-authorities-file=" + dir + "/gone", "--broker-authorities-file: "},
		"authorities without one":        {"--broker-authorities-file=" + empty, "--broker-authorities-file: " + empty + " has no certificate, expected PEM with certificate authorities"},
		"a file without keys":            {"--trusted-keys-file=" + empty, "found 0 trusted keys, expected 1 to 16"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append(slices.Clone(good), test.flag), noVariables, &stdout, &stderr)
		if code != program.ExitUsage || !strings.Contains(stderr.String(), test.want) || strings.Contains(stderr.String(), "hunter2") {
			t.Errorf("%s: exit code %d and %q, want %d and %q", sentence, code, stderr.String(), program.ExitUsage, test.want)
		}
	}
}
