// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package awskms_test

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/test/moto"
)

func TestAnRSAKeyInAWSDecrypts(t *testing.T) {
	url := moto.Start(t)
	admin, p := administratorOf(url), open(t, url, accessKey())
	admin.makeKey(t, types.KeySpecRsa2048, types.KeyUsageTypeEncryptDecrypt, "alias/rsa")
	key := find(t, p, "alias/rsa")
	if key.Signs() || key.Wrapper() != nil || !key.Remote() {
		t.Errorf("found a key that signs (%t), wraps (%t) or is not remote (%t)", key.Signs(), key.Wrapper() != nil, !key.Remote())
	}
	ciphertext, err := rsa.EncryptOAEP(sha256.New(), rand.Reader, key.Public().(*rsa.PublicKey), []byte("data key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := key.Decrypter().DecryptOAEP(t.Context(), crypto.SHA256, ciphertext); err != nil || string(found) != "data key" {
		t.Errorf("found %q, %v", found, err)
	}
	// With the other hash, only the padding is wrong.
	for sentence, wrong := range map[string][]byte{"another hash": ciphertext, "nothing": nil, "zeros": make([]byte, 256)} {
		if _, err := key.Decrypter().DecryptOAEP(t.Context(), crypto.SHA1, wrong); !errors.Is(err, keys.ErrInvalidCiphertext) {
			t.Errorf("%s: found %v, expected ErrInvalidCiphertext", sentence, err)
		}
	}
	if _, err := key.Decrypter().DecryptOAEP(t.Context(), crypto.SHA512, ciphertext); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("a hash that AWS KMS does not have: found %v", err)
	}
}

func TestAnECKeyInAWSAgreesOnSecrets(t *testing.T) {
	url := moto.Start(t)
	admin, p := administratorOf(url), open(t, url, accessKey())
	for curve, spec := range map[ecdh.Curve]types.KeySpec{ecdh.P256(): types.KeySpecEccNistP256, ecdh.P384(): types.KeySpecEccNistP384, ecdh.P521(): types.KeySpecEccNistP521} {
		name := "alias/" + string(spec)
		admin.makeKey(t, spec, types.KeyUsageTypeKeyAgreement, name)
		key := find(t, p, name)
		public, err := key.Public().(*ecdsa.PublicKey).ECDH()
		if err != nil {
			t.Fatal(err)
		}
		own, err := curve.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		want, err := own.ECDH(public)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := key.Exchanger().ECDH(t.Context(), own.PublicKey()); err != nil || !bytes.Equal(found, want) {
			t.Errorf("%s: found another secret, %v", spec, err)
		}
	}
}
