// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/service"
)

// installation is a gateway on a port of this machine, with what its clients need.
type installation struct {
	server      *service.Server
	address     string
	token       string // path of the file
	authorities string
	authority   *authority
	// brokers are the authorities of the certificates of brokers, nil if they need none.
	brokers func() (*x509.CertPool, error)
	access  *access
	manager *manager
	log     *text
	// last is the last request of a namespace.
	last atomic.Pointer[asked]
}

type asked struct {
	namespace string
	name      keys.Name
}

// tenant has the keys that a namespace may reach: keys of the manager for the namespace "shop",
// and none for others.
type tenant struct {
	i         *installation
	namespace string
	all       *keys.Stack
}

func (n tenant) Key(ctx context.Context, name keys.Name) (*keys.Key, error) {
	n.i.last.Store(&asked{n.namespace, name})
	if n.namespace != "shop" {
		return nil, &keys.NoProviderError{Provider: "kms"}
	}
	return n.all.Key(ctx, name)
}

// install starts a gateway that ends with the test.
func install(t testing.TB) *installation {
	t.Helper()
	i := prepare(t)
	i.serve(t, "127.0.0.1:0")
	return i
}

// prepare returns an installation whose gateway does not serve yet.
func prepare(t testing.TB) *installation {
	t.Helper()
	dir := t.TempDir()
	i := &installation{
		token: filepath.Join(dir, "token"), authorities: filepath.Join(dir, "ca.crt"),
		authority: newAuthority(t), access: &access{}, manager: newManager(), log: &text{},
	}
	write(t, i.token, "token-of-web\n")
	write(t, i.authorities, i.authority.pem)
	return i
}

// serve starts the gateway at an address.
func (i *installation) serve(t testing.TB, address string) {
	t.Helper()
	var config net.ListenConfig
	listening, err := config.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	certificate := i.authority.certificate(t)
	i.address = listening.Addr().String()
	stack := keys.NewStack(nil)
	stack.Use(map[string]keys.Provider{"kms": i.manager})
	server := service.New(service.Options{
		KeysOf: func(namespace string) keys.Provider { return tenant{i, namespace, stack} },
		Access: i.access, Logger: slog.New(slog.NewJSONHandler(i.log, nil)),
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }, BrokerAuthorities: i.brokers,
	})
	i.server = server
	served := make(chan error, 1)
	go func() { served <- server.Serve(listening) }()
	t.Cleanup(func() {
		i.stop(server)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// stop ends a gateway at once.
func (i *installation) stop(server *service.Server) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	server.Shutdown(ended)
}

// client returns a provider that asks the gateway.
func (i *installation) client(t testing.TB) *gateway.Client {
	t.Helper()
	client, err := gateway.New(gateway.Options{Address: i.address, TokenFile: i.token, AuthoritiesFile: i.authorities, Logger: slog.New(slog.NewJSONHandler(i.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// access knows one pod for each token "token-of-<pod>", and one profile. Pods may use all keys
// with it except for "kms/forbidden". The pod "stranger" is in a namespace without key providers.
type access struct {
	broken atomic.Bool
	// wait is called before a use is allowed, unless it is nil.
	wait func(pod string)
}

func (a *access) Authenticate(_ context.Context, token string, from netip.Addr) (service.Pod, error) {
	if from != netip.MustParseAddr("127.0.0.1") {
		return service.Pod{}, fmt.Errorf("the request comes from %s", from)
	}
	var name string
	if _, err := fmt.Sscanf(token, "token-of-%s", &name); err != nil {
		return service.Pod{}, service.ErrToken
	}
	namespace := "shop"
	if name == "stranger" {
		namespace = "elsewhere"
	}
	return service.Pod{Namespace: namespace, Name: name, UID: name, ServiceAccount: "default"}, nil
}

func (a *access) Authorize(_ context.Context, pod service.Pod, use service.Use) error {
	if a.wait != nil {
		a.wait(pod.Name)
	}
	switch {
	case a.broken.Load():
		return fmt.Errorf("the API server is away")
	case use.Profile != "P" || use.KeyID == "kms/forbidden":
		return &service.RefusedError{Reason: "the profile does not list the key"}
	}
	return nil
}

// manager is a provider with the keys that a test gives it.
type manager struct {
	asked atomic.Int64
	mu    sync.Mutex
	keys  map[string]func() (*keys.Key, error)
}

func newManager() *manager { return &manager{keys: map[string]func() (*keys.Key, error){}} }

func (m *manager) addKey(id string, key func() (*keys.Key, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[id] = key
}

func (m *manager) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	m.asked.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if key, ok := m.keys[name.ID]; ok {
		return key()
	}
	return nil, keys.ErrNotFound
}

// named returns the name of a key of the manager for an operation of the profile P.
func named(id string, operation profile.Operation) keys.Name {
	return keys.Name{ID: "kms/" + id, Use: keys.Use{Profile: "P", Operation: operation}}
}

// authority makes certificates of gateways.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  string
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{key, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

func (a *authority) certificate(t testing.TB) *tls.Certificate {
	t.Helper()
	return a.sign(t, &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
}

func (a *authority) sign(t testing.TB, template *x509.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// text is a log that goroutines write.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *text) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *text) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
