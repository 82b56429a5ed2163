// SPDX-License-Identifier: Apache-2.0

//go:build process || keymanagers

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binaries is the folder of the broker and of this program, as they are released.
var binaries string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if binaries, err = os.MkdirTemp("", "crypto-broker"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(binaries)
		build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", binaries+"/", ".", "../broker")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, output)
			return 1
		}
		for _, variable := range []string{"CRYPTO_BROKER_SOCKET", "CRYPTO_BROKER_LOG_LEVEL", "CRYPTO_BROKER_LOG_FORMAT", "CRYPTO_BROKER_LOG_OUTPUT"} {
			if err := os.Unsetenv(variable); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}())
}

// profileFile is the set that the brokers of these tests serve.
const profileFile = `
- Name: Default
  API:
    HashData: {HashAlg: sha3-512}
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: user-provided}
    SignData: {SignAlg: ed25519}
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-384
      Validity: {ValidNotBeforeOffset: 0h, ValidNotAfterOffset: 8760h}
      KeyConstraints:
        Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}
        Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}
- Name: Old
  Deprecation: {ReplacedBy: Default}
  API: {HashData: {HashAlg: sha-256}}
`

// sandbox is a folder with a running broker.
type sandbox struct {
	t      *testing.T
	dir    string
	socket string
	broker *exec.Cmd
	log    bytes.Buffer // once the broker has ended
	stop   func()       // ends the broker
}

// newSandbox makes a folder, short enough for a socket, and removes it.
func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s := &sandbox{t: t, dir: dir, socket: filepath.Join(dir, "socket", "crypto-broker-server.sock")}
	s.write("profiles/Profiles.yaml", profileFile)
	return s
}

// start starts the broker and does not wait for it, because the commands wait.
func (s *sandbox) start(args ...string) *sandbox {
	s.t.Helper()
	return s.startProgram(filepath.Join(binaries, "broker"), args...)
}

// startProgram is start with another build of the broker.
func (s *sandbox) startProgram(program string, args ...string) *sandbox {
	s.t.Helper()
	args = append([]string{"--profiles-dir", filepath.Join(s.dir, "profiles"), "--socket-dir", filepath.Dir(s.socket)}, args...)
	s.broker = exec.Command(program, args...)
	s.broker.Stderr = &s.log
	if err := s.broker.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.stop = sync.OnceFunc(func() {
		if err := errors.Join(s.broker.Process.Signal(syscall.SIGTERM), s.broker.Wait()); err != nil || s.t.Failed() {
			s.t.Errorf("the broker ended with %v:\n%s", err, s.log.String())
		}
	})
	s.t.Cleanup(s.stop)
	return s
}

// run runs a command against the broker.
func (s *sandbox) run(args ...string) executed {
	s.t.Helper()
	return execute(s.t, "", append([]string{"--socket", s.socket}, args...)...)
}

// ok runs a command that has to succeed without warnings, and returns its output.
func (s *sandbox) ok(args ...string) string {
	s.t.Helper()
	got := s.run(args...)
	if got.code != 0 || got.stderr != "" {
		s.t.Fatalf("%q: %+v", args, got)
	}
	return got.stdout
}

// write writes a file and returns its path.
func (s *sandbox) write(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// writePEM writes a key or certificate and returns the path of its file.
func (s *sandbox) writePEM(name, label string, der []byte, err error) string {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	return s.write(name, string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})))
}

// signingKeys writes the key pair of a known seed, so that signatures are known.
func (s *sandbox) signingKeys() (private, public string) {
	s.t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	private = s.writePEM("private.pem", "PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(key.Public())
	return private, s.writePEM("public.pem", "PUBLIC KEY", der, err)
}

// issuer writes the files that a certificate needs.
func (s *sandbox) issuer() (csr, caCert, caKey string) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(2, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	caCert = s.writePEM("ca.crt", "CERTIFICATE", der, err)
	der, err = x509.MarshalECPrivateKey(key)
	caKey = s.writePEM("ca.key", "EC PRIVATE KEY", der, err)
	der, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "app"}}, key)
	return s.writePEM("app.csr", "CERTIFICATE REQUEST", der, err), caCert, caKey
}
