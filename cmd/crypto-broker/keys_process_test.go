// SPDX-License-Identifier: Apache-2.0

//go:build process

package main

import (
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheKeyOfAnEncryptionIsWhatKeySourceSays(t *testing.T) {
	s := newSandbox(t)
	raw, err := hex.DecodeString(aesKey)
	if err != nil {
		t.Fatal(err)
	}
	s.write("profiles/Profiles.yaml", profileFile+`
- Name: Listed
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: user-provided, KeyIds: [{Id: orders}]}}
`)
	s.write("keys/orders.bin", string(raw))
	s.start("--keys-dir", filepath.Join(s.dir, "keys"))
	encrypt := []string{"encrypt-data", welcome, "--nonce", nonce, "--output", "json"}
	want := found(t, s.ok(append(encrypt, "--profile", "Listed", "--keyId", "orders")...), "ciphertext")
	for sentence, c := range map[string]struct {
		flags []string
		byID  bool
	}{
		"digits":                        {[]string{"--keySource", "raw", "--key", aesKey}, false},
		"digits, where it says nothing": {[]string{"--key", aesKey}, false},
		"an id":                         {[]string{"--profile", "Listed", "--keySource", "key-id", "--key", "orders"}, true},
		"an id, in upper case":          {[]string{"--profile", "Listed", "--keySource=KEY-ID", "--key=orders"}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := s.run(append(encrypt, c.flags...)...)
			if found(t, got.stdout, "ciphertext") != want || strings.Contains(got.stdout, `"keyId":"orders"`) != c.byID {
				t.Errorf("printed %s, want the ciphertext %v; with the id of the key: %t", got.stdout, want, c.byID)
			}
			if warned := strings.Contains(got.stderr, "--key shows the key to everybody"); warned == c.byID {
				t.Errorf("standard error %q", got.stderr)
			}
		})
	}
}
