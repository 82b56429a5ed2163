// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package main

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

func TestAfterARotationInOpenBaoRewrapBringsAllKeysToTheNewestVersion(t *testing.T) {
	bao := openbao.Start(t)
	bao.Do(t, http.MethodPost, "transit/keys/kek", nil)
	authority, err := os.ReadFile(bao.Authority)
	if err != nil {
		t.Fatal(err)
	}
	s := newSandbox(t)
	s.write("profiles/Profiles.yaml", "- Name: Default\n  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: bao/kek}]}}\n")
	s.write("providers/Providers.yaml", fmt.Sprintf("Providers:\n- {Name: bao, Type: openbao, Endpoints: [%q], CacheTime: -1s}\n", bao.URL))
	s.write("providers/bao/token", bao.Token)
	s.write("providers/bao/ca.crt", string(authority))
	s.start("--key-providers-dir", filepath.Join(s.dir, "providers"))

	store := filepath.Join(s.dir, "store")
	const keys = 20
	for i := range keys {
		s.write(fmt.Sprintf("store/key-%d", i), s.ok("generate-data-key", "--keyId", "bao/kek", "--without-data-key", "--output", "text"))
	}
	plain := s.write("plain", strings.Repeat("4711 boxes\n", 30_000))
	stream := filepath.Join(store, "stream")
	s.ok("encrypt-file", plain, stream, "--keyId", "bao/kek")

	bao.Do(t, http.MethodPost, "transit/keys/kek/rotate", nil)
	if got, want := s.ok("rewrap", store), fmt.Sprintf("rewrapped %d, already new 0, failed 0, ignored 0\n", keys+1); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := s.ok("rewrap", store), fmt.Sprintf("rewrapped 0, already new %d, failed 0, ignored 0\n", keys+1); got != want {
		t.Errorf("a second time: got %q, want %q", got, want)
	}
	for i := range keys {
		content, err := os.ReadFile(filepath.Join(store, fmt.Sprintf("key-%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		wrapped, err := hex.DecodeString(strings.TrimSpace(string(content)))
		if err != nil {
			t.Fatal(err)
		}
		if header, _, err := blob.Parse(wrapped); err != nil || header.KeyVersion != "2" {
			t.Errorf("key %d: found version %q, error %v, want version 2", i, header.KeyVersion, err)
		}
	}

	// The old version can go.
	bao.Do(t, http.MethodPost, "transit/keys/kek/config", map[string]any{"min_decryption_version": 2})
	if got := s.ok("decrypt-file", stream, "-"); got != strings.Repeat("4711 boxes\n", 30_000) {
		t.Errorf("the stream has %d bytes of plaintext", len(got))
	}
	s.ok("unwrap-key", "--file", filepath.Join(store, "key-0"))
}
