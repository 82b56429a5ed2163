// SPDX-License-Identifier: Apache-2.0

//go:build process

package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// storeIn makes TestFilesOfEarlierVersionsAreRead write the files of the present version first. A release does so once.
var storeIn = flag.String("store", "", "write what this version stores into testdata/stored/NAME, for later versions to read")

// The expected content of the stored files.
const (
	storedText     = "4711 boxes"
	storedContext  = "tenant a"
	storedAudience = "7c0e/shop/2b61"
	storedProfiles = `- Name: Orders
  Audit: {Level: all, Required: true}
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: small}]}
    SignData: {SignAlg: ed25519, KeyIds: [{Id: receipts}]}
    DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: wrap}]}
`
)

// storing is a sandbox whose broker has the keys of the stored files. The keys are derived from numbers, so that no private key is
// stored.
type storing struct {
	*sandbox
	audit, auditKey, auditPublic string
}

func newStoring(t *testing.T) *storing {
	t.Helper()
	s := &storing{sandbox: newSandbox(t)}
	for i, name := range []string{"small", "wrap"} {
		s.write("keys/"+name+".bin", strings.Repeat(string(rune(i+1)), 32))
	}
	private, public := s.signingKeys()
	for from, to := range map[string]string{private: "keys/receipts.key", public: "keys/receipts.pub"} {
		s.write(to, content(t, from))
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	s.auditKey = s.writePEM("audit.key", "PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(key.Public())
	s.auditPublic = s.writePEM("audit.pub", "PUBLIC KEY", der, err)
	s.audit = filepath.Join(s.dir, "audit.jsonl")
	if err := os.Remove(filepath.Join(s.dir, "profiles", "Profiles.yaml")); err != nil { // of newSandbox
		t.Fatal(err)
	}
	return s
}

// setKey is the key that signs the stored set.
func setKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
}

// serve starts the broker with the signed set and state that are there.
func (s *storing) serve() {
	s.t.Helper()
	public, _ := setKey().Public().(ed25519.PublicKey)
	s.start("--trusted-keys", signed.FormatKey(public), "--profiles-audience", storedAudience, "--lowest-revision", "100",
		"--state-dir", filepath.Join(s.dir, "served"), "--keys-dir", filepath.Join(s.dir, "keys"),
		"--audit-file", s.audit, "--audit-key", s.auditKey)
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// store writes the files of the present version.
func store(t *testing.T, folder string) {
	t.Helper()
	s := newStoring(t)
	signature, err := signed.Sign(signed.Statement{
		Audience: storedAudience, Revision: 101, Time: time.Now(), Digest: profile.Digest([]byte(storedProfiles)),
	}, setKey())
	if err != nil {
		t.Fatal(err)
	}
	s.write("profiles/Profiles.yaml", storedProfiles)
	s.write("profiles/Profiles.sig", string(signature))
	s.serve()
	s.write("encrypted.json", s.ok("encrypt-data", storedText, "--profile", "Orders", "--keyId", "small", "--output", "json"))
	s.write("signature.hex", s.ok("sign-data", storedText, "--profile", "Orders", "--keyId", "receipts", "--output", "text"))
	s.write("data-key.json", s.ok("generate-data-key", "--profile", "Orders", "--keyId", "wrap", "--context", storedContext, "--output", "json"))
	plain := s.write("plain", strings.Repeat(storedText+"\n", 1_000))
	s.ok("encrypt-file", plain, filepath.Join(s.dir, "stream.enc"), "--profile", "Orders", "--keyId", "wrap", "--context", storedContext)
	s.stop()
	for _, name := range []string{"keys", "socket", "audit.key", "audit.pub", "private.pem", "public.pem", "plain"} {
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(folder, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
}

func TestFilesOfEarlierVersionsAreRead(t *testing.T) {
	if *storeIn != "" {
		store(t, filepath.Join("testdata", "stored", *storeIn))
	}
	folders, err := filepath.Glob("testdata/stored/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("found no files of earlier versions: %v", err)
	}
	for _, folder := range folders {
		for _, from := range []string{"profiles", "served"} {
			t.Run(filepath.Base(folder)+", with the set in "+from, func(t *testing.T) {
				s := newStoring(t)
				if err := os.CopyFS(filepath.Join(s.dir, from), os.DirFS(filepath.Join(folder, from))); err != nil {
					t.Fatal(err)
				}
				s.write("audit.jsonl", content(t, filepath.Join(folder, "audit.jsonl")))
				s.serve()
				s.readsAll(folder)
				s.stop()
				// The broker has continued the log of the earlier version.
				if got := execute(t, "", "audit", "verify", "--key", s.auditPublic, s.audit); got.code != 0 {
					t.Errorf("the log of both versions: %+v", got)
				}
				if now, before := content(t, s.audit), content(t, filepath.Join(folder, "audit.jsonl")); !strings.HasPrefix(now, before) || len(now) == len(before) {
					t.Error("the broker has not gone on with the log of the earlier version")
				}
			})
		}
	}
}

// readsAll reads the files of an earlier version.
func (s *storing) readsAll(folder string) {
	s.t.Helper()
	var encrypted struct{ Ciphertext, Nonce, Tag, KeyID string }
	var dataKey struct{ DataKey, WrappedKey string }
	for name, into := range map[string]any{"encrypted.json": &encrypted, "data-key.json": &dataKey} {
		if err := json.Unmarshal([]byte(content(s.t, filepath.Join(folder, name))), into); err != nil {
			s.t.Fatalf("%s: %v", name, err)
		}
	}
	for what, test := range map[string]struct {
		want    string
		command []string
	}{
		"a ciphertext":      {storedText, []string{"decrypt-data", encrypted.Ciphertext, "--nonce", encrypted.Nonce, "--tag", encrypted.Tag, "--keyId", "small", "--output", "text"}},
		"a signature":       {"valid\n", []string{"verify-data", storedText, strings.TrimSpace(content(s.t, filepath.Join(folder, "signature.hex"))), "--keyId", "receipts", "--output", "text"}},
		"a wrapped key":     {dataKey.DataKey + "\n", []string{"unwrap-key", dataKey.WrappedKey, "--context", storedContext, "--output", "text"}},
		"an encrypted file": {strings.Repeat(storedText+"\n", 1_000), []string{"decrypt-file", filepath.Join(folder, "stream.enc"), "-", "--context", storedContext}},
	} {
		if got := s.ok(append(test.command, "--profile", "Orders")...); got != test.want || got == "\n" {
			s.t.Errorf("%s: found %.80q, expected %.80q", what, got, test.want)
		}
	}
}
