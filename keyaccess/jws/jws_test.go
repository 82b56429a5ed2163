// SPDX-License-Identifier: Apache-2.0

package jws_test

import (
	"crypto"
	"encoding/base64"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/jws"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// signer makes signatures with a key.
type signer struct {
	jose.JSONWebKey
	public crypto.PublicKey
}

// signers are two signers for each algorithm. Algorithms with RSA share their keys, which take long to make.
var signers = sync.OnceValue(func() map[string][2]signer {
	all, made := map[string][2]signer{}, map[string][2]crypto.Signer{}
	for _, name := range jws.Algorithms {
		kind := name
		if name[:1] == "R" || name[:1] == "P" {
			kind = "RS256"
		}
		keys, known := made[kind]
		for i := range keys {
			if !known {
				var err error
				if keys[i], err = issuer.NewKey(jose.SignatureAlgorithm(kind)); err != nil {
					panic(err)
				}
			}
		}
		made[kind] = keys
		var pair [2]signer
		for i, key := range keys {
			pair[i] = signer{jose.JSONWebKey{Key: key, Algorithm: name}, key.Public()}
		}
		all[name] = pair
	}
	return all
})

func (s signer) sign() string {
	return issuer.SignBytes(s.JSONWebKey, map[string]any{"typ": "JWT", "kid": "1", "jwk": jose.JSONWebKey{Key: s.public}}, []byte(`{"sub":"alice"}`))
}

// bySelf reports whether a text is accepted with a key, and byLibrary whether go-jose accepts it, as the reference.
func bySelf(text string, key crypto.PublicKey) bool {
	s, err := jws.Open(text)
	return err == nil && s.Verify(key) == nil
}

func byLibrary(text string, key crypto.PublicKey) bool {
	var all []jose.SignatureAlgorithm
	for _, name := range jws.Algorithms {
		all = append(all, jose.SignatureAlgorithm(name))
	}
	s, err := jose.ParseSignedCompact(text, all)
	if err != nil {
		return false
	}
	_, err = s.Verify(key)
	return err == nil
}

func TestASignatureOfEachAlgorithmIsAcceptedWithItsKeyAlone(t *testing.T) {
	for _, name := range jws.Algorithms {
		t.Run(name, func(t *testing.T) {
			own, other := signers()[name][0], signers()[name][1]
			text := own.sign()
			if !bySelf(text, own.public) {
				t.Error("the signature is not accepted")
			}
			if bySelf(text, other.public) {
				t.Error("the signature is accepted with another key")
			}
			for i, part := range strings.Split(text, ".") {
				for _, at := range []int{0, len(part) / 2, len(part) - 1} {
					parts := strings.Split(text, ".")
					changed := byte('A')
					if part[at] == changed {
						changed = 'B'
					}
					parts[i] = part[:at] + string(changed) + part[at+1:]
					if bySelf(strings.Join(parts, "."), own.public) {
						t.Errorf("another character at %d of part %d is accepted", at, i)
					}
				}
			}
		})
	}
}

// TestTheAlgorithmAndTheKeyHaveToFit tests an attack: the sender names another algorithm than the algorithm of the key.
func TestTheAlgorithmAndTheKeyHaveToFit(t *testing.T) {
	for name, pair := range signers() {
		own := pair[0]
		parts := strings.Split(own.sign(), ".")
		for _, other := range append([]string{"none", "HS256", "", "es256"}, jws.Algorithms...) {
			head := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":%q}`, other))
			if other != name && bySelf(head+"."+parts[1]+"."+parts[2], own.public) {
				t.Errorf("a signature with %s is accepted as one with %s", name, other)
			}
		}
		for other, pair := range signers() {
			if key := pair[0].public; !reflect.DeepEqual(key, own.public) && bySelf(own.sign(), key) {
				t.Errorf("a signature with %s is accepted with a key of %s", name, other)
			}
		}
		if bySelf(own.sign(), nil) || bySelf(own.sign(), []byte("secret")) {
			t.Error("a signature is accepted without a public key")
		}
	}
}

func TestASignatureOfAnotherLengthIsRefused(t *testing.T) {
	for _, name := range []string{"ES256", "ES512", "EdDSA", "RS256"} {
		own := signers()[name][0]
		parts := strings.Split(own.sign(), ".")
		signature, err := base64.RawURLEncoding.DecodeString(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		half := len(signature) / 2
		for what, other := range map[string][]byte{
			"a zero in front":         append([]byte{0}, signature...),
			"a zero behind":           append(append([]byte{}, signature...), 0),
			"zeros before each half":  append(append([]byte{0}, signature[:half]...), append([]byte{0}, signature[half:]...)...),
			"one byte less":           signature[1:],
			"zeros in the same place": make([]byte, len(signature)),
		} {
			if bySelf(parts[0]+"."+parts[1]+"."+base64.RawURLEncoding.EncodeToString(other), own.public) {
				t.Errorf("%s: %s is accepted", name, what)
			}
		}
	}
}

// TestATextOfPointsTakesLittleMemory tests an attack: the request has millions of parts.
func TestATextOfPointsTakesLittleMemory(t *testing.T) {
	text := strings.Repeat(".", 4<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := jws.Open(text)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 1<<20 {
		t.Errorf("found %v and %d bytes, expected an error and less than 1 MiB", err, took)
	}
}

// FuzzVerify changes good texts, and looks for texts that are accepted here but not by go-jose.
func FuzzVerify(f *testing.F) {
	for _, pair := range signers() {
		f.Add(pair[0].sign())
	}
	for _, seed := range []string{"", "..", "a.b.c", "eyJhbGciOiJub25lIn0.e30.AA", "eyJhbGciOiJFUzI1NiIsImNyaXQiOlsiYjY0Il0sImI2NCI6ZmFsc2V9.e30.AA", "eyJhbGciOiJFUzI1NiIsIng1YyI6W119.e30.AA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, pair := range signers() {
			own := pair[0]
			if bySelf(text, own.public) && !byLibrary(text, own.public) {
				t.Errorf("%q is accepted with a key of %s, and the library refuses it", text, own.Algorithm)
			}
		}
	})
}
