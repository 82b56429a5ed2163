// SPDX-License-Identifier: Apache-2.0

//go:build process

package main

import (
	"bytes"
	"context"
	"crypto/sha3"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	welcome       = "Welcome CryptoBroker"
	welcomeDigest = "14894112f30f982c01e1de386ee9ca60bff70469d9fd249a5f9fbfc66a29c37c76b3fb15c294a6b6d3a1609fa59ca14194e2bc9da16610fa7f1a10dad38d628e"
	aesKey        = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	nonce         = "000102030405060708090a0b"
	keyWarning    = "warning: --keyRaw shows the key to everybody who lists processes, and to the shell's history; use --key-file or --keyId\n"
)

// volatile matches the parts of a log that differ between runs.
var volatile = regexp.MustCompile(`"time":"[^"]+"|took \d+ µs`)

func TestWithoutOutputTheLogOfReleasedCommandLinesIsPrinted(t *testing.T) {
	s := newSandbox(t).start("--development-service")
	private, public := s.signingKeys()
	signature := strings.TrimSpace(s.ok("sign-data", "We agree.", "--key", private, "--output", "text"))
	for name, c := range map[string]struct {
		args   []string
		code   int
		stderr string
	}{
		"hash-data.jsonl":     {[]string{"hash-data", welcome}, 0, ""},
		"hash-data-raw.jsonl": {[]string{"hash-data", "--profile=Default", "--output-format=RAW", "x"}, 0, ""},
		"deprecated.jsonl":    {[]string{"--profile", "Old", "hash-data", "x"}, 0, "warning: profile \"Old\" is deprecated, use Default\n"},
		"encrypt-data.jsonl":  {[]string{"encrypt-data", "--keyRaw=" + aesKey, "--nonce=" + nonce, "--aad=beef", welcome}, 0, keyWarning},
		"decrypt-data.jsonl": {[]string{"decrypt-data", "--keyRaw=" + aesKey, "--nonce=" + nonce, "--aad=beef", "--tag=9f9dd1b76a3a5ea0ba6ff2f37ec8cf12",
			"00"}, 3, keyWarning + "crypto-broker decrypt-data: DecryptData with profile \"Default\": "},
		"sign-data.jsonl":     {[]string{"sign-data", "We agree.", "--key", private}, 0, ""},
		"verify-data.jsonl":   {[]string{"verify-data", "We agree.", signature, "--key", public}, 0, ""},
		"not-valid.jsonl":     {[]string{"verify-data", "We don't.", signature, "--key", public}, 5, ""},
		"health.jsonl":        {[]string{"health"}, 0, ""},
		"fake-endpoint.jsonl": {[]string{"fake-endpoint"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.run(c.args...)
			if got.code != c.code || !strings.HasPrefix(got.stderr, c.stderr) || (c.stderr == "") != (got.stderr == "") {
				t.Errorf("exit code %d, standard error %q; want %d, %q", got.code, got.stderr, c.code, c.stderr)
			}
			golden(t, name, volatile.ReplaceAllStringFunc(got.stdout, func(found string) string {
				if strings.HasPrefix(found, "took") {
					return "took N µs"
				}
				return `"time":"…"`
			}))
		})
	}
}

// found returns the value at a path, from the line of a log that has this path.
func found(t *testing.T, log string, path ...string) any {
	t.Helper()
	for line := range strings.Lines(log) {
		var at any
		if err := json.Unmarshal([]byte(line), &at); err != nil {
			t.Fatalf("%q is no JSON: %v", line, err)
		}
		for _, name := range path {
			object, _ := at.(map[string]any)
			at = object[name]
		}
		if at != nil {
			return at
		}
	}
	t.Errorf("nothing is at %q in\n%s", path, log)
	return nil
}

func TestScriptsFindWhatReleasedCommandLinesPrint(t *testing.T) {
	s := newSandbox(t).start()
	log := s.ok("hash-data", "--profile=Default", welcome)
	for _, expression := range []string{`"hashValueHex":"([^"]+)`, `"[hH]ashValueHex":\s?"([^"]+)`} {
		if all := regexp.MustCompile(expression).FindAllStringSubmatch(log, -1); len(all) != 1 || all[0][1] != welcomeDigest {
			t.Errorf("%s finds %q", expression, all)
		}
	}
	for _, path := range [][]string{{"hashValueHex"}, {"response", "HashValue", "HashValueHex"}} {
		if digest := found(t, log, path...); digest != welcomeDigest {
			t.Errorf("%v is %v", path, digest)
		}
	}
	for _, path := range [][]string{{"descriptor", "algorithm"}, {"response", "descriptor", "algorithm"}} {
		if algorithm := found(t, log, path...); algorithm != "sha3-512" {
			t.Errorf("%v is %v", path, algorithm)
		}
	}
	if log := s.ok("health"); !strings.Contains(log, `"Status":"SERVING"`) {
		t.Errorf("health prints %q", log)
	}
	csr, caCert, caKey := s.issuer()
	log = s.ok("sign-certificate", "--csr="+csr, "--caCert="+caCert, "--caKey="+caKey, "--subject=C=DE, O=Test Org, CN=test")
	for _, path := range [][]string{{"pem"}, {"response", "SignedCertificate", "Pem"}} {
		text, _ := found(t, log, path...).(string)
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			t.Fatalf("%v is %q", path, text)
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err != nil || certificate.Subject.String() != "CN=test,O=Test Org,C=DE" {
			t.Errorf("%v: %v, %v", path, certificate.Subject, err)
		}
	}
	log = s.ok("sign-certificate", "--csr", csr, "--caCert", caCert, "--caKey", caKey, "--encoding", "DER")
	der, err := base64.StdEncoding.DecodeString(found(t, log, "response", "SignedCertificate", "Der").(string))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x509.ParseCertificate(der); err != nil {
		t.Error(err)
	}
}

func TestWhatWasEncryptedIsDecrypted(t *testing.T) {
	s := newSandbox(t).start()
	key := s.write("key.hex", aesKey[:32]+"\n"+aesKey[32:]+"\n")
	binary := s.write("binary", "\xff\x00\xfe")
	for sentence, c := range map[string]struct {
		args []string
		want string
		text string
	}{
		"text":             {[]string{welcome}, `{"plaintext":"` + welcome + `"}` + "\n", welcome},
		"nothing":          {[]string{""}, `{"plaintext":""}` + "\n", ""},
		"bytes of a file":  {[]string{"--file", binary}, `{"plaintextBase64":"/wD+"}` + "\n", "\xff\x00\xfe"},
		"a leading hyphen": {[]string{"--", "-x"}, `{"plaintext":"-x"}` + "\n", "-x"},
	} {
		t.Run(sentence, func(t *testing.T) {
			log := s.ok(append([]string{"encrypt-data", "--key-file", key, "--nonce", nonce, "--aad", "beef", "--output", "json"}, c.args...)...)
			args := []string{
				"decrypt-data", found(t, log, "ciphertext").(string), "--key-file", key, "--nonce", found(t, log, "nonce").(string),
				"--aad", "beef", "--tag", found(t, log, "tag").(string), "--output",
			}
			if got := s.ok(append(args, "json")...); got != c.want {
				t.Errorf("decrypted %q, want %q", got, c.want)
			}
			if got := s.ok(append(args, "text")...); got != c.text {
				t.Errorf("decrypted %q, want %q", got, c.text)
			}
		})
	}
}

func TestInputComesFromTheArgumentAFileOrStandardInput(t *testing.T) {
	s := newSandbox(t).start()
	file := s.write("file", welcome)
	for sentence, c := range map[string]struct {
		stdin string
		args  []string
	}{
		"the argument":                          {"", []string{welcome}},
		"a file":                                {"", []string{"--file", file}},
		"standard input":                        {welcome, []string{"-"}},
		"standard input, named by the flag":     {welcome, []string{"--file", "-"}},
		"a file, again and again is once first": {"", []string{"--file=" + file, "--timeout=20s"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			args := append([]string{"hash-data", "--output", "text", "--socket", s.socket}, c.args...)
			if got := execute(t, c.stdin, args...); got != (executed{0, welcomeDigest + "\n", ""}) {
				t.Errorf("%+v", got)
			}
		})
	}
	if got := s.run("hash-data", "--file", filepath.Join(s.dir, "none")); got.code != 1 || got.stdout != "" ||
		!strings.HasPrefix(got.stderr, "crypto-broker hash-data: what to hash cannot be read: open "+s.dir+"/none: ") {
		t.Errorf("a file that is not there: %+v", got)
	}
}

func TestAFileOfAnySizeIsHashed(t *testing.T) {
	s := newSandbox(t).start()
	for _, size := range []int{maxInput, maxInput + 1, 3*maxInput + 17, 4 << 20} {
		content := strings.Repeat("x", size)
		digest := sha3.Sum512([]byte(content))
		want := executed{0, hex.EncodeToString(digest[:]) + "\n", ""}
		if got := execute(t, content, "hash-data", "-", "--output", "text", "--socket", s.socket); got != want {
			t.Errorf("%d bytes: %+v", size, got)
		}
	}
	got := execute(t, strings.Repeat("x", maxInput+1), "hash-data", "-", "--profile", "None", "--socket", s.socket)
	if got.code != 3 || !strings.HasPrefix(got.stderr, `crypto-broker hash-data: HashData with profile "None": `) {
		t.Errorf("a profile that is not there: %+v", got)
	}
}

// slowInput waits before each part except the first.
type slowInput struct {
	parts []string
	time  time.Duration
}

// Read implements io.Reader.
func (s *slowInput) Read(b []byte) (int, error) {
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.parts[0])
	if s.parts[0] = s.parts[0][n:]; s.parts[0] == "" {
		s.parts = s.parts[1:]
		<-time.After(s.time)
	}
	return n, nil
}

func TestAnInputThatTakesLongerThanTheBrokerMayIsHashed(t *testing.T) {
	s := newSandbox(t).start()
	content := strings.Repeat("x", maxInput+1)
	digest := sha3.Sum512([]byte(content + "slower"))
	want := hex.EncodeToString(digest[:]) + "\n"
	for timeout := 300 * time.Millisecond; ; timeout *= 4 {
		input := &slowInput{[]string{content, "slow", "er"}, 2 * timeout}
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"hash-data", "-", "--output", "text", "--socket", s.socket, "--timeout", timeout.String()}, input, &stdout, &stderr)
		if code == 0 && stdout.String() == want {
			return
		}
		// On a busy machine also the broker may take longer. Then the test gives the broker more time, and the input takes longer still.
		if timeout > 10*time.Second || !strings.Contains(stderr.String(), "did not answer within") {
			t.Fatalf("got %d %q %q, want %q", code, stdout.String(), stderr.String(), want)
		}
	}
}

func TestABrokerThatTakesNothingOfALargeInputIsNotWaitedForLonger(t *testing.T) {
	dir := newSandbox(t).dir
	socket := filepath.Join(dir, "silent")
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", socket) // a listener that accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	got := execute(t, strings.Repeat("x", maxInput+1), "hash-data", "-", "--output", "text", "--socket", socket, "--timeout", "200ms")
	want := "crypto-broker hash-data: the broker at " + socket + " did not answer within 200ms: it read no input during this time\n"
	if got != (executed{4, "", want}) {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func TestABrokerThatRefusesIsQuoted(t *testing.T) {
	s := newSandbox(t).start()
	key := s.write("key.hex", aesKey)
	for sentence, c := range map[string]struct {
		args []string
		want string
	}{
		"a profile that is not there":          {[]string{"hash-data", "x", "--profile", "None"}, `HashData with profile "None": `},
		"an operation the profile lacks":       {[]string{"encrypt-data", "x", "--profile", "Old", "--key-file", key}, `EncryptData with profile "Old": `},
		"a nonce of another size":              {[]string{"encrypt-data", "x", "--key-file", key, "--nonce", "00"}, `EncryptData with profile "Default": `},
		"more than an operation takes":         {[]string{"encrypt-data", "--file", s.write("large", strings.Repeat("x", 3<<20)), "--key-file", key, "--nonce", nonce}, "the plaintext has more than 1048576 bytes, which is the most that a broker accepts\n"},
		"a certificate that is not in PEM":     {[]string{"sign-certificate", "--csr", key, "--caCert", s.write("ca.der", "\x30\x82"), "--caKey", key}, "caCert has bytes that are no text in UTF-8, expected text, such as PEM for a key or a certificate\n"},
		"measurements that are switched off":   {[]string{"benchmark"}, "the broker does not offer this, because it was started without --development-service (CRYPTO_BROKER_DEVELOPMENT_SERVICE)\n"},
		"a call for nothing, switched off too": {[]string{"fake-endpoint"}, "the broker does not offer this, because it was started without --development-service"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := s.run(append(c.args, "--output", "json")...)
			if want := fmt.Sprintf("crypto-broker %s: %s", c.args[0], c.want); got.code != 3 || got.stdout != "" || !strings.HasPrefix(got.stderr, want) {
				t.Errorf("%+v, want %q", got, want)
			}
		})
	}
}

func TestMeasurementsAreTold(t *testing.T) {
	s := newSandbox(t).start("--development-service")
	if results, _ := found(t, s.ok("benchmark"), "benchmarkResults").(string); !strings.HasPrefix(results, `{"results":[{"name":"`) {
		t.Errorf("the log has %q", results)
	}
	if results := found(t, s.ok("benchmark", "--output", "json"), "benchmarkResults", "results"); len(results.([]any)) < 5 {
		t.Errorf("JSON has %v", results)
	}
	if text := s.ok("benchmark", "-o", "text"); !regexp.MustCompile(`(?m)^HashData/sha-256 +[0-9.]+[nµm]s$`).MatchString(text) {
		t.Errorf("text is %q", text)
	}
}

func TestTheEnvironmentChangesTheLog(t *testing.T) {
	s := newSandbox(t).start()
	s.ok("health")
	for sentence, c := range map[string]struct {
		name, value string
		check       func(executed) bool
	}{
		"a level above the level of results": {"CRYPTO_BROKER_LOG_LEVEL", "WARN", func(e executed) bool { return e == executed{} }},
		"text": {"CRYPTO_BROKER_LOG_FORMAT", "text", func(e executed) bool {
			return e.code == 0 && strings.Contains(e.stdout, " hashValueHex="+welcomeDigest)
		}},
		"standard error": {"CRYPTO_BROKER_LOG_OUTPUT", "stderr", func(e executed) bool { return e.stdout == "" && strings.Contains(e.stderr, welcomeDigest) }},
		"a level that there is not": {"CRYPTO_BROKER_LOG_LEVEL", "loud", func(e executed) bool {
			return e.code == 2 && strings.Contains(e.stderr, `"loud", expected debug, info, warn or error`)
		}},
		"a format that there is not": {"CRYPTO_BROKER_LOG_FORMAT", "xml", func(e executed) bool {
			return e.code == 2 && strings.Contains(e.stderr, `"xml", expected json or text`)
		}},
		"an output that there is not": {"CRYPTO_BROKER_LOG_OUTPUT", "printer", func(e executed) bool {
			return e.code == 2 && strings.Contains(e.stderr, `"printer", expected stdout or stderr`)
		}},
		"a socket of another name": {"CRYPTO_BROKER_SOCKET", "/nowhere", func(e executed) bool { return e.code == 0 }}, // the flag wins
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if got := s.run("hash-data", welcome); !c.check(got) {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Setenv("CRYPTO_BROKER_SOCKET", s.socket)
	if got := execute(t, "", "hash-data", welcome, "-o", "text"); got != (executed{0, welcomeDigest + "\n", ""}) {
		t.Errorf("the socket of the environment: %+v", got)
	}
}

func TestACommandWaitsForTheBrokerToStart(t *testing.T) {
	s := newSandbox(t)
	program := exec.Command(filepath.Join(binaries, "crypto-broker"), "hash-data", welcome, "--output", "text", "--socket", s.socket)
	var stdout bytes.Buffer
	program.Stdout = &stdout
	stderr, err := program.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	told := make([]byte, 1000)
	n, err := stderr.Read(told)
	if err != nil || string(told[:n]) != "waiting for a broker at "+s.socket+", at most 1m0s\n" {
		t.Errorf("standard error is %q, %v", told[:n], err)
	}
	s.start()
	if err := program.Wait(); err != nil || stdout.String() != welcomeDigest+"\n" {
		t.Errorf("%v, %q", err, stdout.String())
	}
}

func TestACommandThatGivesUpSaysWhatTheBrokerAnswered(t *testing.T) {
	s := newSandbox(t)
	s.write("profiles/Profiles.yaml", "not a profile file\n")
	s.start()
	var got executed
	for timeout := 200 * time.Millisecond; ; timeout *= 2 { // a busy machine needs longer for the start of the broker
		got = s.run("hash-data", welcome, "--timeout", timeout.String())
		if strings.Contains(got.stderr, "no profiles are loaded yet") || timeout > 10*time.Second {
			break
		}
	}
	if want := "HashData: no profiles are loaded yet, try again later\n"; got.code != 4 || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("got %+v, expected the exit code 4 and a standard error that ends in %q", got, want)
	}
}

func TestALoopCallsUntilItIsInterrupted(t *testing.T) {
	s := newSandbox(t).start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	program := exec.CommandContext(ctx, filepath.Join(binaries, "crypto-broker"), "--loop", "1", "encrypt-data", "x", "--keyRaw", aesKey, "--nonce", nonce, "--socket", s.socket, "--output", "json")
	var stderr bytes.Buffer
	program.Stderr = &stderr
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(stdout)
	for range 5 {
		var line map[string]any
		if err := decoder.Decode(&line); err != nil || line["ciphertext"] == "" {
			t.Fatal(line, err)
		}
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for decoder.More() {
		var line map[string]any
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
	}
	if err := program.Wait(); err != nil || stderr.String() != keyWarning {
		t.Errorf("%v, standard error %q, which should warn once", err, stderr.String())
	}
}
