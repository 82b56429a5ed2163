// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers && pkcs11

package service_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/asn1"
	"os"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pkcs11"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/test/softhsm"
)

func TestMain(m *testing.M) { os.Exit(softhsm.Run(m)) }

func TestBrokersUseTheKeysOfATokenThroughTheGateway(t *testing.T) {
	token := softhsm.NewToken(t, "gateway")
	raw := bytes.Repeat([]byte{7}, 32)
	token.ImportAES(t, "orders", 1, raw)
	token.MakeEd25519(t, "ed25519", 1)
	token.MakeRSA(t, "rsa", 1, 2048)
	token.MakeEC(t, "p256", 1, asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7})
	config := &providers.Config{Name: "kms", Type: providers.PKCS11, ActsAsProgram: true, PKCS11: &providers.PKCS11Settings{Module: softhsm.Library, TokenLabel: token.Label}}
	device, err := providers.Types{providers.PKCS11: pkcs11.Open}.Open(config, providers.Credentials{providers.PIN: []byte(softhsm.PIN)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(device.Close)
	i := install(t)
	for _, id := range []string{"orders", "ed25519", "rsa", "p256"} {
		i.manager.addKey(id, func() (*keys.Key, error) { return device.Key(t.Context(), keys.Name{ID: id}) })
	}
	client := i.client(t)

	message := []byte("We agree.")
	digest := sha256.Sum256(message)
	sign := func(id string, input []byte, options crypto.SignerOpts) (crypto.PublicKey, []byte) {
		key := must[*keys.Key](t)(client.Key(t.Context(), named(id, profile.OpSignData)))
		return key.Public(), must[[]byte](t)(key.Signer(t.Context()).Sign(rand.Reader, input, options))
	}
	if public, signature := sign("ed25519", message, crypto.Hash(0)); !ed25519.Verify(public.(ed25519.PublicKey), message, signature) {
		t.Error("the signature with Ed25519 is not valid")
	}
	if public, signature := sign("p256", digest[:], crypto.SHA256); !ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), digest[:], signature) {
		t.Error("the signature with ECDSA is not valid")
	}
	pss := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
	public, signature := sign("rsa", digest[:], pss)
	if err := rsa.VerifyPSS(public.(*rsa.PublicKey), crypto.SHA256, digest[:], signature, pss); err != nil {
		t.Errorf("the signature with RSA-PSS is not valid: %v", err)
	}

	memory := must[*wrap.AES](t)(wrap.NewAES(raw))
	cipher := must[*keys.Key](t)(client.Key(t.Context(), named("orders", profile.OpEncryptData))).Cipher(t.Context())
	nonce, ciphertext, tag, err := cipher.SealRandom(message, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := memory.Cipher().Open(nonce, ciphertext, tag, nil); err != nil || !bytes.Equal(got, message) {
		t.Errorf("outside, the ciphertext is decrypted to %q: %v", got, err)
	}
	for _, with := range []algorithm.Wrapping{algorithm.WrapAESKW, algorithm.WrapAESKWP} {
		wrapper := must[*keys.Key](t)(client.Key(t.Context(), named("orders", profile.OpWrapKey))).Wrapper()
		wrapped := must[[]byte](t)(wrapper.Wrap(t.Context(), with.String(), digest[:], nil))
		if got, err := memory.Unwrap(with, wrapped, nil); err != nil || !bytes.Equal(got, digest[:]) {
			t.Errorf("%s: outside, the data key is not unwrapped: %v", with, err)
		}
		unwrapper := must[*keys.Key](t)(client.Key(t.Context(), named("orders", profile.OpUnwrapKey))).Wrapper()
		if got, err := unwrapper.Unwrap(t.Context(), with.String(), wrapped, nil); err != nil || !bytes.Equal(got, digest[:]) {
			t.Errorf("%s: the data key is not unwrapped: %v", with, err)
		}
	}
}
