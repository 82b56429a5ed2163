// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers && pkcs11

package pkcs11_test

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the format of OpenTDF, and all that SoftHSM has
	"encoding/asn1"
	"errors"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/test/softhsm"
)

func TestAnRSAKeyOfATokenDecrypts(t *testing.T) {
	token := softhsm.NewToken(t, "decrypts")
	token.MakeRSA(t, "rsa", 1, 2048)
	p := open(t, token)
	key := find(t, p, "rsa")
	ciphertext, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, key.Public().(*rsa.PublicKey), []byte("data key"), nil) //nolint:gosec // as above
	if err != nil {
		t.Fatal(err)
	}
	if found, err := key.Decrypter().DecryptOAEP(t.Context(), crypto.SHA1, ciphertext); err != nil || string(found) != "data key" {
		t.Errorf("found %q, %v", found, err)
	}
	forged := bytes.Clone(ciphertext)
	forged[255] ^= 1
	for sentence, wrong := range map[string][]byte{"a forged ciphertext": forged, "zeros": make([]byte, 256)} {
		for range 4 { // more failures than a circuit breaker needs to open
			if _, err := key.Decrypter().DecryptOAEP(t.Context(), crypto.SHA1, wrong); !errors.Is(err, keys.ErrInvalidCiphertext) {
				t.Errorf("%s: found %v, expected ErrInvalidCiphertext", sentence, err)
			}
		}
	}
	if !p.Status()[0].Usable {
		t.Error("forged ciphertexts have stopped the use of the token")
	}
}

func TestAnECKeyOfATokenAgreesOnSecrets(t *testing.T) {
	token := softhsm.NewToken(t, "agrees")
	p := open(t, token)
	for name, c := range map[string]struct {
		curve      ecdh.Curve
		identifier asn1.ObjectIdentifier
	}{"p256": {ecdh.P256(), p256}, "p521": {ecdh.P521(), p521}} {
		token.MakeEC(t, name, 1, c.identifier)
		key := find(t, p, name)
		public, err := key.Public().(*ecdsa.PublicKey).ECDH()
		if err != nil {
			t.Fatal(err)
		}
		for range 8 { // secrets that begin with zeros have the same length
			own, err := c.curve.GenerateKey(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			want, err := own.ECDH(public)
			if err != nil {
				t.Fatal(err)
			}
			if found, err := key.Exchanger().ECDH(t.Context(), own.PublicKey()); err != nil || !bytes.Equal(found, want) {
				t.Errorf("%s: found another secret, %v", name, err)
			}
		}
	}
}
