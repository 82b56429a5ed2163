// SPDX-License-Identifier: Apache-2.0

package wrapping_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

// holder finds one key, which a test replaces.
type holder struct{ key *keys.Key }

func (h *holder) Key(context.Context, keys.Name) (*keys.Key, error) { return h.key, nil }

// decrypter decrypts in memory.
type decrypter struct{ private *rsa.PrivateKey }

func (d decrypter) DecryptOAEP(_ context.Context, hash crypto.Hash, ciphertext []byte) ([]byte, error) {
	return d.private.Decrypt(nil, ciphertext, &rsa.OAEPOptions{Hash: hash})
}

func newRSA(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func managed(t *testing.T, private *rsa.PrivateKey) *keys.Key {
	t.Helper()
	key, err := keys.NewOpening("kas", private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key.WithDecrypter(decrypter{private})
}

func wrappedFor(t *testing.T, key wrapping.Key) wrapping.Wrapped {
	t.Helper()
	recipient, err := wrapping.NewRecipient(key.Public(), false)
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := recipient.Wrap([]byte("data key"))
	if err != nil {
		t.Fatal(err)
	}
	return wrapping.Wrapped{Type: key.Algorithm().Type(), Key: wrapped, Ephemeral: recipient.SessionKey()}
}

func TestAnotherKeyWithTheSameNameInAKeyManagerIsNotUsed(t *testing.T) {
	h := &holder{managed(t, newRSA(t))}
	key, err := wrapping.Manage(t.Context(), h, keys.Name{ID: "aws/alias/kas"})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := key.Unwrap(t.Context(), wrappedFor(t, key)); err != nil || string(found) != "data key" {
		t.Errorf("found %q, %v", found, err)
	}
	h.key = managed(t, newRSA(t)) // an alias that was moved
	if _, err := key.Unwrap(t.Context(), wrappedFor(t, key)); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("found %v, expected ErrUnavailable", err)
	}
}

func TestAKeyThatAKeyManagerGivesOutIsInMemory(t *testing.T) {
	signing, err := keys.NewSigning("kas", newRSA(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := wrapping.Manage(t.Context(), &holder{signing}, keys.Name{ID: "bao/kas"})
	if err != nil {
		t.Fatal(err)
	}
	if _, remote := key.(wrapping.Managed); remote {
		t.Error("found a key of a key manager, expected one in memory")
	}
	if found, err := key.Unwrap(t.Context(), wrappedFor(t, key)); err != nil || string(found) != "data key" {
		t.Errorf("found %q, %v", found, err)
	}
}
