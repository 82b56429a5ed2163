// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package server_test

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmsfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	baoserver "github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

func TestAReleasedProfileEncryptsUnderAKeyInOpenBao(t *testing.T) {
	s := baoserver.Start(t)
	s.Do(t, http.MethodPost, "sys/mounts/mykeys", map[string]any{"type": "kv", "options": map[string]any{"version": "2"}})
	const hexKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	for id, key := range map[string]string{"secret-key": hexKey, "gone": hexKey, "small": hexKey[:32], "other/key": hexKey} {
		s.Do(t, http.MethodPost, "mykeys/data/"+id, map[string]any{"data": map[string]any{"key": key}})
	}
	s.Do(t, http.MethodDelete, "mykeys/metadata/gone", nil)
	token := s.TokenWith(t, `path "mykeys/data/+" { capabilities = ["read"] }`)
	authority, err := os.ReadFile(s.Authority)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"openbao.yaml": fmt.Sprintf("# of a released broker\naddress: %s\ntoken: %s\nmount: mykeys\n", s.URL, token),
		"ca.crt":       string(authority),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	managers := kmsfile.New(dir)
	t.Cleanup(managers.Close)
	const profiles = `
- Name: Default
  KMS: {Client: openbao, Config: openbao.yaml, Cache: false}
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: user-provided}}
- Name: Cached
  KMS: {Client: openbao, Config: openbao.yaml, Cache: true}
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: user-provided}}
`
	conn := connect(t, startWith(t, profiles, nil, server.WithKeyManagers(managers.Provider)).socket(""))
	nonce := strings.Repeat("n", 12)
	key, err := hex.DecodeString(hexKey)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"Default", "Cached"} {
		reply := ask(t, conn, methodEncrypt, encryption(profile, byID("secret-key"), nonce, "Welcome CryptoBroker"))
		sealed := parse(t, []byte(reply[replyCipherMetadata]))
		if plain, err := gcm.Open(nil, []byte(nonce), []byte(reply[replyCiphertext]+sealed[sealedTag]), nil); err != nil || string(plain) != "Welcome CryptoBroker" {
			t.Errorf("%s: opened to %q, %v", profile, plain, err)
		}
		decrypt := message{}.text(dataProfile, profile).bytes(dataKey, byID("secret-key")).text(dataText, reply[replyCiphertext]).
			bytes(dataCipherMetadata, message{}.text(cipherNonce, nonce).text(cipherTag, sealed[sealedTag]))
		if got := ask(t, conn, methodDecrypt, decrypt); got[1] != "Welcome CryptoBroker" {
			t.Errorf("%s: decrypted to %q", profile, got[1])
		}
	}
	for sentence, test := range map[string]struct {
		id   string
		code codes.Code
		want string
	}{
		"no secret":                      {"none", codes.NotFound, `there is no key "none"`},
		"a secret that was deleted":      {"gone", codes.NotFound, `there is no key "gone"`},
		"a key of another size":          {"small", codes.InvalidArgument, `keySource is a key of 128 bits, expected one of 256 bits`},
		"a secret outside of the rights": {"other/key", codes.PermissionDenied, `the key manager denies the use of the key "other/key"; the broker's log says why`},
		"a path to another mount":        {"../../sys/mounts", codes.NotFound, `there is no key "../../sys/mounts"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			refuses(t, conn, methodEncrypt, encryption("Default", byID(test.id), nonce, "plain"), test.code, `EncryptData with profile "Default": `+test.want)
		})
	}
	s.Kill()
	refuses(t, conn, methodEncrypt, encryption("Default", byID("secret-key"), nonce, "plain"), codes.Unavailable, `EncryptData with profile "Default": the keys cannot be reached; the broker's log says why`)
	ask(t, conn, methodEncrypt, encryption("Cached", byID("secret-key"), nonce, "plain")) // for a minute
}
