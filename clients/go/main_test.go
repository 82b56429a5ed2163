// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// waitLimit is far above what anything here takes; only a failure reaches it.
const waitLimit = 30 * time.Second

// binary is the broker, built from the same checkout.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "client")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "broker")
		build := exec.CommandContext(context.Background(), "go", "build", "-o", binary, "./cmd/broker")
		build.Dir = filepath.Join("..", "..")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, output)
			return 1
		}
		examples, err := startExamples(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := errors.Join(examples.await(), client.Close(ctx), examples.stop(syscall.SIGTERM)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if code == 0 {
			if err := goleak.Find(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
		return code
	}())
}

// profiles is what the brokers of the tests serve.
const profiles = `
- Name: Default
  API:
    HashData: {HashAlg: sha-256}
- Name: Old
  API:
    HashData: {HashAlg: sha-512}
  Deprecation: {ReplacedBy: Default, DeprecatedSince: 2026-01-01, RemoveAfter: 2027-01-01, Reason: It is long.}
- Name: Orders
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: orders}]}
- Name: Data
  API:
    DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: orders}]}
- Name: Shop
  API:
    Session: {Protocols: [session-v1, session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}
- Name: Native
  API:
    Session: {Protocols: [session-hpke-p256, session-hpke-x-wing], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: sessions}]}
- Name: Own
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 128}
- Name: Receipts
  API:
    SignData: {SignAlg: ed25519}
- Name: Contracts
  API:
    SignData: {SignAlg: ecdsa, HashAlg: sha-256}
- Name: Both
  API:
    SignData: {SigningMode: hybrid, SignAlg: ecdsa+ml-dsa-65, HashAlg: sha-256}
- Name: Servers
  API:
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-384
      KeyConstraints: {Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}, Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}}
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 8760h}
      KeyUsage: [digitalSignature]
      ExtendedKeyUsage: [serverAuth]
`

// sessionsKey signs for the native sessions.
var sessionsKey = ed25519.NewKeyFromSeed([]byte(strings.Repeat("s", ed25519.SeedSize)))

// process is a broker that can be killed and started again.
type process struct {
	args   []string
	socket string

	mu  sync.Mutex
	cmd *exec.Cmd
	log bytes.Buffer
}

// newProcess prepares a broker in a directory.
func newProcess(dir string) (*process, error) {
	sockets, policies, keys := filepath.Join(dir, "s"), filepath.Join(dir, "profiles"), filepath.Join(dir, "keys")
	for _, d := range []string{policies, keys} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	signing, err := x509.MarshalPKCS8PrivateKey(sessionsKey)
	if err != nil {
		return nil, err
	}
	files := map[string]string{
		filepath.Join(policies, "Profiles.yaml"): profiles,
		filepath.Join(keys, "orders.bin"):        strings.Repeat("k", 32),
		filepath.Join(keys, "sessions.key"):      string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: signing})),
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return &process{
		args:   []string{"--profiles-dir", policies, "--socket-dir", sockets, "--keys-dir", keys, "--log-level", "warn"},
		socket: filepath.Join(sockets, "crypto-broker-server.sock"),
	}, nil
}

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = exec.CommandContext(context.Background(), binary, p.args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CRYPTO_BROKER_") {
			p.cmd.Env = append(p.cmd.Env, variable)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	return p.cmd.Start()
}

// stop ends the broker. After SIGTERM it has to exit with code 0.
func (p *process) stop(signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("%w\n%s", err, &p.log)
	}
	if err := p.cmd.Wait(); err != nil && signal == syscall.SIGTERM {
		return fmt.Errorf("%w\n%s", err, &p.log)
	}
	return nil
}

// await returns once the broker serves.
func (p *process) await() error {
	client, err := cryptobroker.New(cryptobroker.WithSocket(p.socket))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	_, err = client.HashData(ctx, cryptobroker.HashDataRequest{Profile: "Default"})
	return errors.Join(err, client.Close(ctx))
}

// startBroker starts a broker for a test.
func startBroker(t testing.TB) *process {
	t.Helper()
	p, err := newProcess(socketDir(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A broker that has just started does not handle the signal yet.
		if err := errors.Join(p.await(), p.stop(syscall.SIGTERM)); err != nil {
			t.Error(err)
		}
	})
	return p
}

// socketDir is a directory whose path is short enough for a socket.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "client")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// newClient makes a client for a test.
func newClient(t testing.TB, socket string, options ...cryptobroker.Option) *cryptobroker.Client {
	t.Helper()
	client, err := cryptobroker.New(append([]cryptobroker.Option{cryptobroker.WithSocket(socket)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return client
}

func withTimeout(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	t.Cleanup(cancel)
	return ctx
}
