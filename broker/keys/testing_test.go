// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/mldsa"
	mldsax509 "filippo.io/mldsa/x509"
	"go.uber.org/goleak"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Keys of every kind, made once.
var (
	rsaKey   = must(rsa.GenerateKey(rand.Reader, 2048))
	ecKey    = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	otherKey = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	edKey    = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	mlKey    = must(mldsa.GenerateKey(mldsa.MLDSA65()))
)

func block(label string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
}

func privatePEM(key any) string {
	return block("PRIVATE KEY", must(mldsax509.MarshalPKCS8PrivateKey(key)))
}

func publicPEM(key crypto.Signer) string {
	return block("PUBLIC KEY", must(mldsax509.MarshalPKIXPublicKey(key.Public())))
}

// certificate makes a certificate for a key. It is self-signed, or signed with the key of the issuer.
func certificate(key, issuer crypto.Signer, change func(*x509.Certificate)) string {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if change != nil {
		change(template)
	}
	return block("CERTIFICATE", must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), issuer)))
}

// directory is a key directory that is watched, with the events that its observer received.
type directory struct {
	*keys.Directory
	t      *testing.T
	dir    string
	events chan keys.Event
}

// waitLimit is far above what anything here takes; only a failure reaches it.
const waitLimit = 20 * time.Second

// watch follows a directory, and reads it only after notifications.
func watch(t *testing.T, dir string, options ...keys.Option) *directory {
	t.Helper()
	d := &directory{t: t, dir: dir, events: make(chan keys.Event, 1024)}
	ctx, cancel := context.WithCancel(t.Context())
	options = append([]keys.Option{
		keys.WithPollInterval(time.Hour),
		keys.WithObserver(func(e keys.Event) { d.events <- e }),
	}, options...)
	var err error
	if d.Directory, err = keys.Watch(ctx, dir, options...); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); d.Wait() })
	return d
}

// next waits for the next event.
func (d *directory) next() keys.Event {
	d.t.Helper()
	select {
	case e := <-d.events:
		return e
	case <-time.After(waitLimit):
		d.t.Fatal("nothing new was found in the directory")
		return keys.Event{}
	}
}

// until waits for an event that has the property.
func (d *directory) until(what string, is func(keys.Event) bool) keys.Event {
	d.t.Helper()
	for {
		select {
		case e := <-d.events:
			if is(e) {
				return e
			}
		case <-time.After(waitLimit):
			d.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// has reports whether the key is in use, by its public key.
func (d *directory) has(id string, public crypto.PublicKey) {
	d.t.Helper()
	key, err := d.Key(d.t.Context(), keys.Name{ID: id})
	if err != nil {
		d.t.Fatalf("key %q: %v", id, err)
	}
	if equal, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !equal.Equal(public) {
		d.t.Fatalf("key %q is another one than expected", id)
	}
}

func (d *directory) write(name, content string) {
	d.t.Helper()
	write(d.t, filepath.Join(d.dir, name), content)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	// The file is written under another name and then renamed, so that no reader sees an incomplete file.
	beside := filepath.Join(filepath.Dir(path), ".new")
	if err := os.WriteFile(beside, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, path); err != nil {
		t.Fatal(err)
	}
}

// project replaces the content of a volume in the steps of a kubelet: a new
// directory, a new link renamed over the old one, links to what is new at the
// top, and the old directory removed. Names may be in subdirectories.
func project(t *testing.T, volume string, files map[string]string) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(os.MkdirAll(volume, 0o755))
	stamped := must(os.MkdirTemp(volume, "..2026_11_20_"))
	ok(os.Chmod(stamped, 0o755))
	top := map[string]bool{}
	for name, content := range files {
		path := filepath.Join(stamped, name)
		ok(os.MkdirAll(filepath.Dir(path), 0o755))
		ok(os.WriteFile(path, []byte(content), 0o644))
		first, _, _ := strings.Cut(name, "/")
		top[first] = true
	}
	data := filepath.Join(volume, "..data")
	old, _ := os.Readlink(data) // there is no old directory the first time
	ok(os.Symlink(filepath.Base(stamped), filepath.Join(volume, "..data_tmp")))
	ok(os.Rename(filepath.Join(volume, "..data_tmp"), data))
	for name := range top {
		if _, err := os.Lstat(filepath.Join(volume, name)); os.IsNotExist(err) {
			ok(os.Symlink(filepath.Join("..data", name), filepath.Join(volume, name)))
		}
	}
	for _, entry := range must(os.ReadDir(volume)) {
		if !top[entry.Name()] && entry.Type()&os.ModeSymlink != 0 && !strings.HasPrefix(entry.Name(), "..") {
			ok(os.Remove(filepath.Join(volume, entry.Name())))
		}
	}
	if old != "" {
		ok(os.RemoveAll(filepath.Join(volume, old)))
	}
}
