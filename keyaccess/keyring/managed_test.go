// SPDX-License-Identifier: Apache-2.0

package keyring_test

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/keyring"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

// manager is a key manager with the keys of a test.
type manager struct {
	mu   sync.Mutex
	keys map[keys.Name]*keys.Key
}

func (m *manager) set(t *testing.T, name keys.Name, key *keys.Key, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[name] = key.WithVersion(name.Version)
}

func (m *manager) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key := m.keys[name]; key != nil {
		return key, nil
	}
	return nil, keys.ErrUnavailable
}

// opening does not unwrap anything, because these tests only read public keys.
type opening struct{}

func (opening) DecryptOAEP(context.Context, crypto.Hash, []byte) ([]byte, error) {
	return nil, keys.ErrInvalidCiphertext
}

func (opening) ECDH(context.Context, *ecdh.PublicKey) ([]byte, error) {
	return nil, keys.ErrInvalidCiphertext
}

func public(t *testing.T, curve elliptic.Curve) crypto.PublicKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key.Public()
}

func TestAFileThatNamesAKeyOfAKeyManagerIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		finder wrapping.Finder
		part   string
	}{
		"without key providers":   {map[string]string{"a.ref": "hsm/a"}, nil, "a.ref: names a key of a key manager, expected a directory of key providers"},
		"without a provider":      {map[string]string{"a.ref": "kas-1"}, &manager{}, `a.ref: found "kas-1", expected the name of a key provider, a slash and the id of a key`},
		"empty":                   {map[string]string{"a.ref": "\n"}, &manager{}, "expected the name of a key provider"},
		"with too much":           {map[string]string{"a.ref": "hsm/a 1 2"}, &manager{}, "expected the name of a key provider"},
		"with an id with a blank": {map[string]string{"a b.ref": "hsm/a"}, &manager{}, `"a b.ref": expected a name`},
		"beside a private key":    {map[string]string{"a.ref": "hsm/a", "a.key": ecKey(t, elliptic.P256())}, &manager{}, "found a.key and a.ref, expected one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.files)
			if _, err := keyring.Open(dir, c.finder, nil); err == nil || !strings.Contains(err.Error(), c.part) {
				t.Errorf("found %v, expected %q", err, c.part)
			}
		})
	}
}

func TestAKeyThatAKeyManagerDoesNotGiveIsPending(t *testing.T) {
	m := &manager{keys: map[keys.Name]*keys.Key{}}
	signing, err := keys.NewVerifying("a", public(t, elliptic.P256()), nil)
	m.set(t, keys.Name{ID: "hsm/signs"}, signing, err)
	versions, err := keys.NewOpening("a", public(t, elliptic.P256()))
	m.set(t, keys.Name{ID: "hsm/versions"}, versions.WithExchanger(opening{}), err)
	m.keys[keys.Name{ID: "hsm/versions"}] = versions.WithExchanger(opening{}).WithVersion("7")
	small, err := rsa.GenerateKey(rand.Reader, 2176)
	if err != nil {
		t.Fatal(err)
	}
	odd, err := keys.NewOpening("a", small.Public())
	m.set(t, keys.Name{ID: "hsm/odd"}, odd.WithDecrypter(opening{}), err)

	dir := t.TempDir()
	write(t, dir, map[string]string{
		"here.key": ecKey(t, elliptic.P384()), "away.ref": "hsm/away 1\n", "signs.ref": "hsm/signs", "versions.ref": "hsm/versions", "odd.ref": "hsm/odd", "current": "here\naway\n",
	})
	d, err := keyring.Open(dir, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	pending := d.Ring().Pending()
	for name, part := range map[string]string{
		"away": "not available", "signs": "does not agree on secrets", "versions": "expected a version in the same file; the newest one is 7", "odd": "is an RSA key of 2176 bits",
	} {
		if why := pending[name]; why == nil || !strings.Contains(why.Error(), part) {
			t.Errorf("%s: found %v, expected %q", name, why, part)
		}
		found := d.Ring().For(name, wrapping.EC)
		if len(found) != 1 {
			t.Fatalf("%s: found %v, expected a key that is pending", name, found)
		}
		if _, err := found[0].Key.Unwrap(t.Context(), wrapping.Wrapped{Type: wrapping.EC}); !errors.Is(err, keys.ErrUnavailable) {
			t.Errorf("%s: found %v, expected ErrUnavailable, so that clients try again", name, err)
		}
	}
	if len(pending) != 4 || len(d.Ring().Algorithms()) != 1 {
		t.Errorf("found %v and the algorithms %v, expected one key that clients get", pending, d.Ring().Algorithms())
	}
}

func TestKeysOfAKeyManagerRotateWithThoseOfFiles(t *testing.T) {
	m := &manager{keys: map[keys.Name]*keys.Key{}}
	dir := t.TempDir()
	write(t, dir, map[string]string{"old.key": ecKey(t, elliptic.P256()), "new.ref": "hsm/kas 2", "current": "new\n"})
	rings := make(chan *keyring.Ring, 100)
	d, err := keyring.Open(dir, m, func(ring *keyring.Ring, err error) {
		if err != nil {
			t.Error(err)
		}
		rings <- ring
	})
	if err != nil {
		t.Fatal(err)
	}
	if key, _ := d.Ring().Current(wrapping.P256); key.ID != "old" {
		t.Errorf("found the current key %q before the key manager answers, expected the old one", key.ID)
	}
	write(t, dir, map[string]string{"older.key": ecKey(t, elliptic.P256())})
	if again, err := keyring.Open(dir, m, nil); err != nil || len(again.Ring().Algorithms()) > 0 {
		t.Errorf("with two old keys before the key manager answers: found %v, expected no key that clients get", err)
	}
	created, err := keys.NewOpening("kas", public(t, elliptic.P256()))
	m.set(t, keys.Name{ID: "hsm/kas", Version: "2"}, created.WithExchanger(opening{}), err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	defer func() { cancel(); <-done }()
	select {
	case ring := <-rings:
		if key, _ := ring.Current(wrapping.P256); key.ID != "new" || len(ring.Pending()) > 0 {
			t.Errorf("found the current key %q, pending %v", key.ID, ring.Pending())
		}
		if found := ring.For("", wrapping.EC); len(found) != 3 || found[1].ID != "old" {
			t.Errorf("found %v, expected that the old key goes on unwrapping", found)
		}
	case <-time.After(time.Minute):
		t.Fatal("the key is still pending after a minute")
	}
}
