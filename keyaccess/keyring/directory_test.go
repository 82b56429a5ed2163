// SPDX-License-Identifier: Apache-2.0

package keyring_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/keyring"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

func ecKey(t *testing.T, curve elliptic.Curve) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		// A rename makes the complete file appear in the directory at once.
		temporary := filepath.Join(dir, "."+name)
		if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADirectoryThatIsNotValidIsRefused(t *testing.T) {
	one, other := ecKey(t, elliptic.P256()), ecKey(t, elliptic.P256())
	for name, c := range map[string]struct {
		files map[string]string
		part  string
	}{
		"empty":                        {nil, "found no key, expected a file such as rsa-1.key"},
		"a key that is no key":         {map[string]string{"a.key": "text"}, "a.key has no complete PEM block"},
		"a file of another name":       {map[string]string{"a.key": one, "a.txt": ""}, `"a.txt": expected a name such as rsa-1.key`},
		"an id with a blank":           {map[string]string{"a b.key": one}, `"a b.key": expected a name`},
		"two keys without a choice":    {map[string]string{"a.key": one, "b.key": other}, "current: found no line for the algorithm ec:secp256r1, expected one of its keys: [a b]"},
		"a current key that is none":   {map[string]string{"a.key": one, "current": "b\n"}, `current: found "b", expected the id of a key`},
		"two current keys":             {map[string]string{"a.key": one, "b.key": other, "current": "a\nb\n"}, "which are both of the algorithm ec:secp256r1"},
		"a key on another curve":       {map[string]string{"a.key": ecKey(t, elliptic.P224())}, "a.key is an EC key on another curve"},
		"a key that is much too large": {map[string]string{"a.key": strings.Repeat("x", 65<<10)}, "a.key: has more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.files)
			if _, err := keyring.Open(dir, nil, nil); err == nil || !strings.Contains(err.Error(), c.part) {
				t.Errorf("found %v, expected %q", err, c.part)
			}
		})
	}
	if _, err := keyring.Open("keys", nil, nil); err == nil || !strings.Contains(err.Error(), "expected an absolute path") {
		t.Errorf("a relative path: found %v", err)
	}
}

func TestKeysRotateWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"old.key": ecKey(t, elliptic.P256()), "large.key": ecKey(t, elliptic.P384())})
	type event struct {
		ring *keyring.Ring
		err  error
	}
	events := make(chan event, 100)
	d, err := keyring.Open(dir, nil, func(ring *keyring.Ring, err error) { events <- event{ring, err} })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	defer func() { cancel(); <-done }()
	next := func() event {
		select {
		case e := <-events:
			return e
		case <-time.After(time.Minute):
			t.Fatal("the directory has not reported a change within a minute")
			return event{}
		}
	}
	current := func() string {
		key, _ := d.Ring().Current(wrapping.P256)
		return key.ID
	}

	write(t, dir, map[string]string{"new.key": ecKey(t, elliptic.P256())})
	if e := next(); e.err == nil || current() != "old" || d.Ring().Len() != 2 {
		t.Fatalf("a second key without a choice: found %v, and the current key %s of %d", e.err, current(), d.Ring().Len())
	}
	write(t, dir, map[string]string{"current": "new\n"})
	if e := next(); e.err != nil || current() != "new" {
		t.Fatalf("with a choice: found %v, and the current key %s", e.err, current())
	}
	if keys := d.Ring().For("old", wrapping.EC); len(keys) != 1 || keys[0].ID != "old" {
		t.Errorf("the old key no longer unwraps: found %v", keys)
	}
	ids := ""
	for _, key := range d.Ring().For("", wrapping.EC) {
		ids += key.ID + " "
	}
	if ids != "large new old " {
		t.Errorf("without an id: found the keys %s", ids)
	}
	if keys := d.Ring().For("", wrapping.RSA); len(keys) != 0 {
		t.Errorf("RSA: found the keys %v", keys)
	}
	if err := os.Remove(filepath.Join(dir, "old.key")); err != nil {
		t.Fatal(err)
	}
	if e := next(); e.err != nil || d.Ring().For("old", wrapping.EC) != nil {
		t.Errorf("a key that is removed: found %v", e.err)
	}
}
