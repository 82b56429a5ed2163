// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// writeAuditKey writes the public key of a seed, and returns the name of the file.
func writeAuditKey(t *testing.T, key ed25519.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "audit.pub")
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAuditVerifySaysWhetherALogIsIntact(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	output, err := audit.OpenFile(file, 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.New(audit.Options{Output: output, Signer: key, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		log.Add(&audit.Record{Code: "OK"})
	}
	log.Close()
	if err := output.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(damaged, bytes.Replace(text, []byte(`"OK"`), []byte(`"NO"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	public := writeAuditKey(t, key)
	marked := filepath.Join(t.TempDir(), "audit.pub")
	if text, err := os.ReadFile(public); err != nil || os.WriteFile(marked, append([]byte("\ufeff"), text...), 0o600) != nil {
		t.Fatal("cannot write the key with a byte order mark:", err)
	}
	other := writeAuditKey(t, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)))
	for name, test := range map[string]struct {
		args  []string
		stdin string
		code  int
		want  string
	}{
		"an intact log":                {[]string{"--key", public, file}, "", 0, "intact\n3 records in 1 chains, 1 checkpoints, 0 lines that no checkpoint signs, 0 records lost by the broker\n"},
		"a key of a Windows editor":    {[]string{"--key", marked, file}, "", 0, "intact\n"},
		"an intact log, without a key": {[]string{file}, "", 0, "intact\n"},
		"lines of a collector, twice":  {[]string{"--collected", "--key", public, file, file}, "", 0, "intact\n3 records in 1 chains, 1 checkpoints, 0 lines that no checkpoint signs, 0 records lost by the broker\n"},
		"a copy that was changed":      {[]string{"--collected", file, damaged}, "", 1, "DAMAGED: line 2 of " + damaged + " has the same number 1 as line 2 of " + file + ", but another text\n"},
		"standard input":               {[]string{"-"}, string(text), 0, "intact\n"},
		"an intact log as JSON":        {[]string{"--output", "json", file}, "", 0, "{\n  \"intact\": true,\n  \"records\": 3,"},
		"a changed record":             {[]string{"--key", public, damaged}, "", 1, "DAMAGED: line 2 of " + damaged + " was changed, or a line before it was\n"},
		"another key":                  {[]string{"--key", other, file}, "", 1, "DAMAGED: line 1 of " + file + " names another public key than the given one\n"},
		"a file that is no log":        {[]string{public}, "", 1, "DAMAGED: line 1 of " + public + " is not a line of an audit log\n"},
		"a file that is not there":     {[]string{file + "x"}, "", 1, ""},
		"an empty name of the key":     {[]string{"--key", "", file}, "", 2, ""},
		"a private key":                {[]string{"--key", file, file}, "", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, test.stdin, append([]string{"audit", "verify"}, test.args...)...)
			if got.code != test.code || !strings.HasPrefix(got.stdout, test.want) {
				t.Errorf("exit code %d, output %q, standard error %q; expected %d and %q", got.code, got.stdout, got.stderr, test.code, test.want)
			}
		})
	}
}

func TestAuditVerifySaysThatALogWithoutLinesShowsNothing(t *testing.T) {
	for args, want := range map[string]string{
		"":            "standard input is empty: no record was written to it yet, or somebody emptied it, and the log cannot say which",
		"--collected": "no line of an audit log was found: no record was written yet, or somebody removed them all, and the files cannot say which",
	} {
		got := execute(t, "", append([]string{"audit", "verify", "--output", "json", "-"}, strings.Fields(args)...)...)
		if got.code != 0 || !strings.Contains(got.stdout, "\"publicKeys\": [],\n  \"notes\": [\n    \""+want+"\"\n  ]\n") {
			t.Errorf("%q: got %+v", args, got)
		}
	}
}
