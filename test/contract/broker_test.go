// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// own is the version that is checked out.
var own version

// buildOwn builds the broker of this checkout and returns what removes it.
func buildOwn() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "contract")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	own, err = readVersion(ownVersion, repository)
	own.binary = filepath.Join(dir, "broker")
	if err = errors.Join(err, buildBroker(context.Background(), repository, own.binary)); err != nil {
		remove()
	}
	return remove, err
}

// broker is a running broker.
type broker struct {
	version        version
	folder, socket string
	cmd            *exec.Cmd
	log            bytes.Buffer
	// values are the keys and certificates that requests name.
	values map[string]any
}

// startBroker starts a broker until the test ends, and waits until it serves.
func startBroker(t *testing.T, v version) *broker {
	t.Helper()
	dir, err := os.MkdirTemp("", "contract") // a path that is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	envelopes, sessions := newKey(t), newKey(t)
	files := map[string][]byte{
		"profiles/Profiles.yaml": v.profiles,
		"keys/orders.bin":        bytes.Repeat([]byte("k"), 32),
		"keys/archive.bin":       bytes.Repeat([]byte("a"), 32),
		"keys/letters.key":       privatePEM(t, newKey(t)),
		"keys/envelopes.key":     privatePEM(t, envelopes),
		"keys/sessions.key":      privatePEM(t, sessions),
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	b := &broker{version: v, folder: dir, socket: filepath.Join(dir, "s", "crypto-broker-server.sock"), values: values(t)}
	b.values["envelopes_public"] = base64.StdEncoding.EncodeToString(publicDER(t, envelopes))
	b.values["session_public"] = sessions.Public()
	b.start(t)
	t.Cleanup(func() {
		if err := errors.Join(b.cmd.Process.Signal(syscall.SIGTERM), b.cmd.Wait()); err != nil {
			t.Errorf("the broker ended with %v\n%s", err, &b.log)
		}
	})
	b.await(t)
	return b
}

// start starts the process of the broker.
func (b *broker) start(t *testing.T) {
	t.Helper()
	b.cmd = exec.CommandContext(context.Background(), b.version.binary, "--profiles-dir", filepath.Join(b.folder, "profiles"),
		"--keys-dir", filepath.Join(b.folder, "keys"), "--socket-dir", filepath.Dir(b.socket), "--log-level", "warn")
	b.cmd.Stdout, b.cmd.Stderr = &b.log, &b.log
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process of the broker as a crash does.
func (b *broker) kill(t *testing.T) {
	t.Helper()
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = b.cmd.Wait() // it says that the process was killed
}

// await returns once the broker serves.
func (b *broker) await(t *testing.T) {
	t.Helper()
	w, err := newWire(b.socket, v1)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := w.call(Call{Operation: "Health"})
	if err := errors.Join(err, w.close()); err != nil {
		t.Fatal(err)
	}
	if status := answer.Reply["status"]; status != healthpb.HealthCheckResponse_SERVING.String() {
		t.Fatalf("the broker is %v (%+v)", status, answer.Error)
	}
}

// values returns the keys and certificates that the cases name.
func values(t *testing.T) map[string]any {
	t.Helper()
	key, authority := newKey(t), newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Contract CA"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(10 * 365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, authority.Public(), authority)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "web"}}, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"p256_private":   base64.StdEncoding.EncodeToString(privatePEM(t, key)),
		"p256_public":    base64.StdEncoding.EncodeToString(publicDER(t, key)),
		"ca_key":         string(privatePEM(t, authority)),
		"ca_certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		"csr":            string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})),
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func privatePEM(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func publicDER(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return der
}
