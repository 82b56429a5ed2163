// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

var update = flag.Bool("update", false, "write the golden files anew")

// executed is the result of a command.
type executed struct {
	code           int
	stdout, stderr string
}

func execute(t *testing.T, stdin string, args ...string) executed {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return executed{code, stdout.String(), stderr.String()}
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestWhatCommandsPrint(t *testing.T) {
	const good, bad, hopeless = "testdata/good/Profiles.yaml", "testdata/bad.yaml", "testdata/hopeless.yaml"
	for name, c := range map[string]struct {
		args   []string
		code   int
		stderr string
	}{
		"validate.txt":         {[]string{"profiles", "validate", good, bad}, 1, ""},
		"validate.json":        {[]string{"profiles", "validate", "--output", "json", bad, good}, 1, ""},
		"validate-fips.txt":    {[]string{"profiles", "validate", "--require-fips", good}, 1, ""},
		"warnings.txt":         {[]string{"profiles", "validate", hopeless, good}, 0, ""},
		"warnings.json":        {[]string{"profiles", "validate", "--output", "json", hopeless}, 0, ""},
		"show.txt":             {[]string{"profiles", "show", good}, 0, ""},
		"show.json":            {[]string{"profiles", "show", "testdata/good", "-o", "json"}, 0, ""},
		"show-bad.txt":         {[]string{"profiles", "show", bad}, 1, "testdata/bad.yaml:4:29: profile \"Bad\": API.HashData.HashAlg: "},
		"show-fips.txt":        {[]string{"profiles", "show", "--require-fips", good}, 1, "testdata/good/Profiles.yaml:23:3: profile \"Later\": API: has no operation that FIPS 140-3 approves"},
		"help.txt":             {[]string{"--help"}, 0, ""},
		"help-validate.txt":    {[]string{"profiles", "validate", "--help"}, 0, ""},
		"help-show.txt":        {[]string{"profiles", "show", "--help"}, 0, ""},
		"help-kmip-speed.txt":  {[]string{"kmip-speed", "--help"}, 0, ""},
		"help-session.txt":     {[]string{"session", "bench", "--help"}, 0, ""},
		"help-audit.txt":       {[]string{"audit", "verify", "--help"}, 0, ""},
		"help-of-a-group.txt":  {[]string{"profiles"}, 0, ""},
		"help-hash.txt":        {[]string{"hash-data", "--help"}, 0, ""},
		"help-certificate.txt": {[]string{"sign-certificate", "--help"}, 0, ""},
		"help-encrypt.txt":     {[]string{"encrypt-data", "--help"}, 0, ""},
		"help-verify.txt":      {[]string{"verify-data", "--help"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, "", c.args...)
			if got.code != c.code || !strings.HasPrefix(got.stderr, c.stderr) || (c.stderr == "") != (got.stderr == "") {
				t.Errorf("exit code %d, standard error %q; want %d, %q", got.code, got.stderr, c.code, c.stderr)
			}
			golden(t, name, got.stdout)
		})
	}
}

func TestAWrongCommandLineIsNamedInOneSentence(t *testing.T) {
	const (
		signed    = "what was signed and the signature; the first may be - for standard input, or --file in its place"
		seeVerify = " (see crypto-broker verify-data --help)"
	)
	for sentence, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown command":         {[]string{"surf"}, `crypto-broker: unknown command "surf" (see crypto-broker --help)`},
		"an unknown one of a group":  {[]string{"profiles", "surf"}, `crypto-broker profiles: unknown command "surf" (see crypto-broker profiles --help)`},
		"an unknown check":           {[]string{"audit", "verfy", "audit.jsonl"}, `crypto-broker audit: unknown command "verfy" (see crypto-broker audit --help)`},
		"an unknown trial":           {[]string{"access", "surf"}, `crypto-broker access: unknown command "surf" (see crypto-broker access --help)`},
		"an unknown measurement":     {[]string{"session", "surf"}, `crypto-broker session: unknown command "surf" (see crypto-broker session --help)`},
		"an unknown flag":            {[]string{"profiles", "show", "--surf"}, "crypto-broker profiles show: unknown flag: --surf (see crypto-broker profiles show --help)"},
		"an unknown format":          {[]string{"profiles", "show", "-o", "xml"}, `crypto-broker profiles show: invalid argument "xml" for "-o, --output" flag: expected text or json (see crypto-broker profiles show --help)`},
		"nothing to validate":        {[]string{"profiles", "validate"}, "crypto-broker profiles validate: found 0 arguments, expected at least one file, directory or - (see crypto-broker profiles validate --help)"},
		"two files to show":          {[]string{"profiles", "show", "a", "b"}, "crypto-broker profiles show: found 2 arguments, expected one file, directory or -, or none to ask a broker (see crypto-broker profiles show --help)"},
		"a file and a socket":        {[]string{"profiles", "show", "a", "--socket", "/s"}, "crypto-broker profiles show: --socket is only for asking a broker, but a file is named; give one of them (see crypto-broker profiles show --help)"},
		"a requirement for a broker": {[]string{"profiles", "show", "--require-fips"}, "crypto-broker profiles show: --require-fips is only for files, because a broker says what it requires; name a file or leave the flag out (see crypto-broker profiles show --help)"},
		"a loop without a pause":     {[]string{"health", "--loop", "0"}, "crypto-broker health: --loop is 0, expected 1 to 1000 (milliseconds) (see crypto-broker health --help)"},
		"nothing to hash":            {[]string{"hash-data"}, "crypto-broker hash-data: found neither the argument nor --file, expected one of them (see crypto-broker hash-data --help)"},
		"two things to hash":         {[]string{"hash-data", "a", "--file", "b"}, "crypto-broker hash-data: found the argument and --file, expected one of them (see crypto-broker hash-data --help)"},
		"an unknown form of digests": {[]string{"hash-data", "a", "--output-format", "octal"}, `crypto-broker hash-data: invalid argument "octal" for "--output-format" flag: expected hex or raw (see crypto-broker hash-data --help)`},
		"no certificate request":     {[]string{"sign-certificate"}, "crypto-broker sign-certificate: no certificate request is named, expected --csr FILE (see crypto-broker sign-certificate --help)"},
		"a time that is none":        {[]string{"sign-certificate", "--csr", "testdata/good/Profiles.yaml", "--not-after", "soon"}, `crypto-broker sign-certificate: --not-after is "soon", expected a time after 1970 like 2027-01-31T12:00:00Z (see crypto-broker sign-certificate --help)`},
		"an empty time":              {[]string{"sign-certificate", "--csr", "testdata/good/Profiles.yaml", "--not-after", ""}, `crypto-broker sign-certificate: --not-after is "", expected a time after 1970 like 2027-01-31T12:00:00Z (see crypto-broker sign-certificate --help)`},
		"no key":                     {[]string{"encrypt-data", "a"}, "crypto-broker encrypt-data: no key is named, expected --keyId, --key-file or --keyRaw (see crypto-broker encrypt-data --help)"},
		"two keys":                   {[]string{"sign-data", "a", "--keyId", "k", "--key", "f"}, "crypto-broker sign-data: found --keyId and --key, expected one of them (see crypto-broker sign-data --help)"},
		"a kind of another key":      {[]string{"encrypt-data", "a", "--keySource", "key-id", "--keyId", "k"}, "crypto-broker encrypt-data: found --keySource and --keyId, expected --key together with --keySource (see crypto-broker encrypt-data --help)"},
		"an unknown kind of a key":   {[]string{"encrypt-data", "a", "--keySource", "file", "--key", "k"}, `crypto-broker encrypt-data: invalid argument "file" for "--keySource" flag: expected raw or key-id (see crypto-broker encrypt-data --help)`},
		"a nonce of other digits":    {[]string{"encrypt-data", "a", "--keyId", "k", "--nonce", "xyz"}, "crypto-broker encrypt-data: --nonce is not an even number of hexadecimal digits (see crypto-broker encrypt-data --help)"},
		"standard input twice":       {[]string{"sign-data", "-", "--key", "-"}, "crypto-broker sign-data: standard input is named twice, for what to sign and for the key, expected once (see crypto-broker sign-data --help)"},
		"no signature":               {[]string{"verify-data"}, "crypto-broker verify-data: found no signature, expected " + signed + seeVerify},
		"no signature of a file":     {[]string{"verify-data", "--file", "a"}, "crypto-broker verify-data: found no signature, expected " + signed + seeVerify},
		"data or a signature":        {[]string{"verify-data", "a"}, "crypto-broker verify-data: found 1 argument, expected 2: " + signed + seeVerify},
		"two things that are signed": {[]string{"verify-data", "a", "00", "--file", "b"}, "crypto-broker verify-data: found 2 arguments and --file, expected only the signature with --file" + seeVerify},
		"an empty signature":         {[]string{"verify-data", "a", "", "--keyId", "k"}, "crypto-broker verify-data: the signature is empty, expected its hexadecimal digits" + seeVerify},
		"no time":                    {[]string{"profiles", "show", "--timeout", "0s"}, "crypto-broker profiles show: --timeout is 0s, expected more than 0 (see crypto-broker profiles show --help)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(executed{2, "", c.want + "\n"}, execute(t, "", c.args...), cmp.AllowUnexported(executed{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	empty := t.TempDir()
	for _, command := range []string{"validate", "show"} {
		got := execute(t, "", "profiles", command, empty)
		want := fmt.Sprintf("crypto-broker profiles %s: open %s: no such file or directory\n", command, filepath.Join(empty, "Profiles.yaml"))
		if got.code != 1 || got.stderr != want || got.stdout != "" {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

func TestStandardInputIsAFileToo(t *testing.T) {
	const text = "- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n"
	if got := execute(t, text, "profiles", "validate", "-"); got != (executed{0, "<stdin>: valid, 1 profile served\n", ""}) {
		t.Errorf("%+v", got)
	}
	if got := execute(t, text, "profiles", "show", "-"); got != (executed{0, "P: 128 bits\n  HashData  sha-256  128 bits  SHA-256  FIPS 140-3 approves it\n", ""}) {
		t.Errorf("%+v", got)
	}
	if got := execute(t, strings.Repeat("#", 2<<20), "profiles", "validate", "-"); got.code != 1 || !strings.Contains(got.stdout, "1048576") {
		t.Errorf("a file above the limit: %+v", got)
	}
}

// serve runs a broker with profiles and returns its socket.
func serve(t *testing.T, profiles string, options ...server.Option) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "broker") // the path of the test's own would be too long
	if err != nil {
		t.Fatal(err)
	}
	broker := server.New(slog.New(slog.DiscardHandler), telemetry.NewMetrics("test"), options...)
	set, problems := profile.Compile(profile.FileName, []byte(profiles))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	broker.Use(set, 0)
	sockets, err := unixsocket.Listen(unixsocket.Options{Dir: dir, Group: -1})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- broker.Serve(sockets) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(broker.Shutdown(ctx), <-served, sockets.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, contract.SocketFile)
}

func TestABrokerTellsTheSameAsItsFile(t *testing.T) {
	file, err := os.ReadFile("testdata/good/Profiles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := execute(t, "", "profiles", "show", "--output", "json", "--socket", serve(t, string(file)))
	type shown struct {
		Digest   string           `json:"digest"`
		Broker   map[string]any   `json:"broker"`
		Profiles []map[string]any `json:"profiles"`
	}
	var told, judged shown
	if err := errors.Join(
		json.Unmarshal([]byte(got.stdout), &told),
		json.Unmarshal([]byte(execute(t, "", "profiles", "show", "--output", "json", "testdata/good").stdout), &judged),
	); err != nil {
		t.Fatalf("%v\n%+v", err, got)
	}
	if module, _ := told.Broker["module"].(string); module == "" || told.Broker["requiresFIPS"] != false {
		t.Errorf("the broker computes with %+v", told.Broker)
	}
	told.Broker = nil
	if diff := cmp.Diff(judged, told); diff != "" {
		t.Errorf("(-file +broker):\n%s", diff)
	}
}

func TestABrokerWithManyProfilesIsReadToTheEnd(t *testing.T) {
	var profiles strings.Builder
	for i := range 450 {
		fmt.Fprintf(&profiles, "- Name: P%03d\n  API: {HashData: {HashAlg: sha-256}}\n", i)
	}
	got := execute(t, "", "profiles", "show", "--socket", serve(t, profiles.String()))
	if n := strings.Count(got.stdout, "HashData"); got.code != 0 || n != 450 || !strings.HasPrefix(got.stdout, "Go Cryptographic Module ") {
		t.Errorf("%d profiles, exit code %d, %q", n, got.code, got.stderr)
	}
}

func TestABrokerThatIsNotThereIsNamed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "none.sock")
	for _, command := range []string{"profiles show", "health", "hash-data x", "benchmark", "session bench"} {
		name := strings.TrimSuffix(command, " x")
		for timeout := 50 * time.Millisecond; ; timeout *= 4 {
			got := execute(t, "", append(strings.Fields(command), "--socket", socket, "--timeout", timeout.String())...)
			// On a busy machine no attempt to connect may end within a short timeout. The command then cannot say that nobody listens.
			if strings.Contains(got.stderr, "did not answer within") && timeout < time.Minute {
				continue
			}
			want := fmt.Sprintf("crypto-broker %s: there is no broker at %s, waited %s: dial unix %[2]s: connect: no such file or directory\n", name, socket, timeout)
			if got.code != 4 || strings.TrimPrefix(got.stderr, "trying a session and a request\n") != want { // which session bench says before
				t.Errorf("%+v, want %q", got, want)
			}
			break
		}
	}
}

func TestVersionTellsCommandLineAndClient(t *testing.T) {
	var told struct {
		CLI, Client struct {
			Version string
			Commit  string `json:"git_sha"`
		}
		FIPS map[string]any
	}
	got := execute(t, "", "version")
	if got.code != 0 || json.Unmarshal([]byte(got.stdout), &told) != nil || told.CLI.Version == "" || told.CLI.Commit == "" ||
		told.Client != told.CLI || told.FIPS == nil {
		t.Errorf("%+v", got)
	}
}

func TestShellsCompleteCommands(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := execute(t, "", "completion", shell); got.code != 0 || !strings.Contains(got.stdout, "crypto-broker") {
			t.Errorf("%s: exit code %d, %q", shell, got.code, got.stderr)
		}
	}
	if got := execute(t, "", "__complete", "profiles", "show", "--output", ""); !strings.HasPrefix(got.stdout, "text\njson\n") {
		t.Errorf("--output is completed with %q", got.stdout)
	}
}
