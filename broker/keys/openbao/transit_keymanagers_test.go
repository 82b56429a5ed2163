// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package openbao_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	server "github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

func TestAKeyInTransitSignsAndGoVerifies(t *testing.T) {
	s := server.Start(t)
	p := transit(t, s)
	message := []byte("to be signed")
	digest := sha256.Sum256(message)
	for _, c := range []struct {
		sentence, kind string
		input          []byte
		options        crypto.SignerOpts
		verify         func(public crypto.PublicKey, signature []byte) bool
	}{
		{"RSA with PKCS #1 v1.5", "rsa-2048", digest[:], crypto.SHA256, func(public crypto.PublicKey, signature []byte) bool {
			return rsa.VerifyPKCS1v15(public.(*rsa.PublicKey), crypto.SHA256, digest[:], signature) == nil
		}},
		{"RSA with PSS", "rsa-2048", digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}, func(public crypto.PublicKey, signature []byte) bool {
			return rsa.VerifyPSS(public.(*rsa.PublicKey), crypto.SHA256, digest[:], signature, &rsa.PSSOptions{SaltLength: 32}) == nil
		}},
		{"ECDSA on P-256", "ecdsa-p256", digest[:], crypto.SHA256, func(public crypto.PublicKey, signature []byte) bool {
			return ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), digest[:], signature)
		}},
		{"ECDSA on P-521", "ecdsa-p521", digest[:], crypto.SHA256, func(public crypto.PublicKey, signature []byte) bool {
			return ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), digest[:], signature)
		}},
		{"Ed25519, which takes the message", "ed25519", message, crypto.Hash(0), func(public crypto.PublicKey, signature []byte) bool {
			return ed25519.Verify(public.(ed25519.PublicKey), message, signature)
		}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			makeKey(t, s, c.kind, c.kind)
			key := find(t, p, keys.Name{ID: c.kind})
			if !key.Signs() || !key.Remote() || key.Version() != "1" {
				t.Errorf("found signs %t, remote %t, version %q", key.Signs(), key.Remote(), key.Version())
			}
			signature, err := key.Signer(t.Context()).Sign(rand.Reader, c.input, c.options)
			if err != nil {
				t.Fatal(err)
			}
			if !c.verify(key.Public(), signature) {
				t.Error("the signature is not valid")
			}
		})
	}
	t.Run("a certificate is issued with a key that never leaves", func(t *testing.T) {
		key := find(t, p, keys.Name{ID: "ecdsa-p256"})
		certify := func(template *x509.Certificate) string {
			template.SerialNumber, template.NotAfter = big.NewInt(1), time.Now().Add(time.Hour)
			der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key.Signer(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			return pemOf("CERTIFICATE", der)
		}
		s.Do(t, http.MethodPost, "transit/keys/ecdsa-p256/set-certificate", map[string]any{"certificate_chain": certify(&x509.Certificate{})})
		if found := find(t, p, keys.Name{ID: "ecdsa-p256"}); len(found.Certificates()) != 1 || found.OfAuthority() {
			t.Errorf("found %d certificates, want the one that Transit has", len(found.Certificates()))
		}
		credentials := credentialsOf(t, s, s.Token)
		credentials["ecdsa-p256.crt"] = []byte(certify(&x509.Certificate{IsCA: true, BasicConstraintsValid: true}))
		found := find(t, open(t, configOf(s, providers.OpenBaoSettings{}), credentials), keys.Name{ID: "ecdsa-p256"})
		if chain := found.Certificates(); len(chain) != 1 || chain[0].CheckSignatureFrom(chain[0]) != nil || !found.OfAuthority() {
			t.Errorf("found %d certificates, want the one of an authority from the credentials", len(chain))
		}
		credentials["ecdsa-p521.crt"] = credentials["ecdsa-p256.crt"]
		other := open(t, configOf(s, providers.OpenBaoSettings{}), credentials)
		if _, err := other.Key(t.Context(), keys.Name{ID: "ecdsa-p521"}); !errors.Is(err, keys.ErrUnusable) {
			t.Errorf("the certificate of another key: got %v, want ErrUnusable", err)
		}
	})
	t.Run("a digest that Transit does not know is refused", func(t *testing.T) {
		key := find(t, p, keys.Name{ID: "rsa-2048"})
		if _, err := key.Signer(t.Context()).Sign(rand.Reader, digest[:], crypto.SHA512_256); !errors.Is(err, keys.ErrUnusable) {
			t.Errorf("got %v, want ErrUnusable", err)
		}
	})
}

func TestAKeyInTransitEncrypts(t *testing.T) {
	s := server.Start(t)
	p := transit(t, s)
	creator := p.(keys.Creator)
	if err := creator.CreateAES(t.Context(), "orders", 256); err != nil {
		t.Fatal(err)
	}
	additional := []byte("row 7")
	before := find(t, p, keys.Name{ID: "orders"}).Cipher(t.Context())
	if size := before.KeySize(); size != 32 {
		t.Errorf("the key has %d bytes, want 32", size)
	}
	type sealed struct{ nonce, ciphertext, tag []byte }
	seal := func(c engine.Cipher, plaintext []byte) sealed {
		nonce, ciphertext, tag, err := c.SealRandom(plaintext, additional)
		if err != nil {
			t.Fatal(err)
		}
		return sealed{nonce, ciphertext, tag}
	}
	old := seal(before, []byte("secret"))
	opens := func(c engine.Cipher, from sealed, want string) {
		t.Helper()
		got, err := c.Open(from.nonce, from.ciphertext, from.tag, additional)
		if err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	opens(before, old, "secret")
	opens(before, seal(before, nil), "")
	if _, err := before.Open(old.nonce, old.ciphertext, old.tag, []byte("row 8")); !errors.Is(err, engine.ErrAuthentication) {
		t.Errorf("other additional data: got %v, want ErrAuthentication", err)
	}

	if err := creator.Rotate(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	newest := find(t, p, keys.Name{ID: "orders"})
	if newest.Version() != "2" {
		t.Errorf("after a rotation the version is %q, want 2", newest.Version())
	}
	after := newest.Cipher(t.Context())
	opens(after, old, "secret") // although the previous version encrypted it
	fresh := seal(after, []byte("new"))
	first := find(t, p, keys.Name{ID: "orders", Version: "1"}).Cipher(t.Context())
	opens(first, old, "secret")
	if _, err := first.Open(fresh.nonce, fresh.ciphertext, fresh.tag, additional); !errors.Is(err, engine.ErrAuthentication) {
		t.Errorf("another version than the one that is named: got %v, want ErrAuthentication", err)
	}
	for _, name := range []keys.Name{{ID: "orders", Version: "3"}, {ID: "orders", Version: "x"}, {ID: "none"}, {ID: "../sys/mounts"}, {ID: ".."}} {
		if _, err := p.Key(t.Context(), name); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("the key %v: got %v, want ErrNotFound", name, err)
		}
	}
	s.Do(t, http.MethodPost, "transit/keys/orders/config", map[string]any{"min_decryption_version": 2})
	if _, err := find(t, p, keys.Name{ID: "orders"}).Cipher(t.Context()).Open(old.nonce, old.ciphertext, old.tag, additional); !errors.Is(err, engine.ErrAuthentication) {
		t.Errorf("a version that the server does not decrypt with any more: got %v, want ErrAuthentication", err)
	}
}

func TestKeysWrappedByTransitAreThoseOfTheStandards(t *testing.T) {
	s := server.Start(t)
	p := transit(t, s)
	dataKey, binding := bytes.Repeat([]byte{7}, 32), []byte("tenant 3")

	makeKey(t, s, "aes", "aes128-gcm96")
	aes := find(t, p, keys.Name{ID: "aes"}).Wrapper()
	exported := s.Do(t, http.MethodGet, "transit/export/encryption-key/aes/1", nil)["keys"].(map[string]any)["1"].(string)
	raw, err := base64.StdEncoding.DecodeString(exported)
	if err != nil {
		t.Fatal(err)
	}
	local, err := wrap.NewAES(raw)
	if err != nil {
		t.Fatal(err)
	}
	gcm := algorithm.WrapAESGCM.String()
	wrapped, err := aes.Wrap(t.Context(), gcm, dataKey, binding)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := local.Unwrap(algorithm.WrapAESGCM, wrapped, binding); err != nil || !bytes.Equal(got, dataKey) {
		t.Errorf("what Transit wrapped is not unwrapped with the same key outside of it: %v", err)
	}
	if wrapped, err = local.Wrap(algorithm.WrapAESGCM, dataKey, binding); err != nil {
		t.Fatal(err)
	}
	if got, err := aes.Unwrap(t.Context(), gcm, wrapped, binding); err != nil || !bytes.Equal(got, dataKey) {
		t.Errorf("Transit does not unwrap what the same key wrapped outside of it: %v", err)
	}
	if _, err := aes.Unwrap(t.Context(), gcm, wrapped, []byte("tenant 4")); !errors.Is(err, keys.ErrInvalidCiphertext) {
		t.Errorf("another context: got %v, want ErrInvalidCiphertext", err)
	}
	if _, err := aes.Unwrap(t.Context(), gcm, []byte("short"), nil); !errors.Is(err, keys.ErrInvalidCiphertext) {
		t.Errorf("no ciphertext at all: got %v, want ErrInvalidCiphertext", err)
	}
	if _, err := aes.Wrap(t.Context(), algorithm.WrapAESKW.String(), dataKey, nil); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("an algorithm that Transit does not have: got %v, want ErrUnusable", err)
	}

	// RSA keys of Transit have no place for the header that a wrapped key is bound to.
	makeKey(t, s, "rsa", "rsa-2048")
	if find(t, p, keys.Name{ID: "rsa"}).Wrapper() != nil {
		t.Error("an RSA key wraps data keys, want none that does")
	}
}
