// SPDX-License-Identifier: Apache-2.0

package kmsplugin_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/kmsplugin"
)

// manager is a key manager in memory. Every id is one of its keys, with the same versions.
type manager struct {
	mu       sync.Mutex
	versions []*keys.Key
	err      error         // the error of every request, if it is not nil
	hang     chan struct{} // requests wait until it is closed, if it is not nil
	requests int
}

// rotate makes a new version of the key.
func (m *manager) rotate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	material := make([]byte, 32)
	rand.Read(material)
	key, err := keys.NewAES("key", material)
	if err != nil {
		panic(err)
	}
	m.versions = append(m.versions, key.WithVersion(strconv.Itoa(len(m.versions)+1)))
}

// fail makes all requests fail with an error. With nil, requests succeed again.
func (m *manager) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// hangs makes new requests wait until a channel is closed. With nil, they do not wait.
func (m *manager) hangs(until chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hang = until
}

// counted returns how many requests there were.
func (m *manager) counted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests
}

// Key implements keys.Provider.
func (m *manager) Key(ctx context.Context, name keys.Name) (*keys.Key, error) {
	m.mu.Lock()
	m.requests++
	hang, err, version := m.hang, m.err, len(m.versions)
	m.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	if name.Version != "" {
		if version, err = strconv.Atoi(name.Version); err != nil {
			return nil, keys.ErrNotFound
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if version < 1 || version > len(m.versions) {
		return nil, keys.ErrNotFound
	}
	return m.versions[version-1], nil
}

// harness is a plugin that serves on a socket, and a client of the plugin.
type harness struct {
	*testing.T
	manager *manager
	plugin  *kmsplugin.Plugin
	client  kmsapi.KeyManagementServiceClient
	dir     string
	socket  string
	stop    func()
	log     *lockedBuffer

	mu  sync.Mutex
	now time.Time
}

func newHarness(t *testing.T, change ...func(*kmsplugin.Options)) *harness {
	t.Helper()
	h := &harness{T: t, manager: &manager{}, log: &lockedBuffer{}, now: time.Now()}
	h.manager.rotate()
	o := kmsplugin.Options{Keys: h.manager, Key: "bao/key", Logger: slog.New(slog.NewJSONHandler(h.log, nil)), Now: h.clock}
	for _, change := range change {
		change(&o)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	h.plugin = kmsplugin.New(o)
	dir, err := os.MkdirTemp("", "kms") // the path of a socket is short, and TempDir has the name of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h.dir = dir
	h.start()
	connection, err := grpc.NewClient("unix://"+h.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	h.client = kmsapi.NewKeyManagementServiceClient(connection)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the plugin:\n%s", h.log)
		}
		_ = connection.Close()
		h.stop()
	})
	return h
}

// start starts the plugin. stop stops it.
func (h *harness) start() {
	h.Helper()
	sockets, err := unixsocket.Listen(unixsocket.Options{Dir: h.dir, Group: -1})
	if err != nil {
		h.Fatal(err)
	}
	h.socket = sockets.Paths()[0]
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- kmsplugin.Serve(ctx, kmsplugin.NewServer(h.plugin), sockets.Listeners()[0]) }()
	h.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			h.Error(err)
		}
		if err := sockets.Close(); err != nil {
			h.Error(err)
		}
	}
}

func (h *harness) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// later moves the clock of the plugin.
func (h *harness) later(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(by)
}

// expectHealthy returns the key id of a plugin that is healthy.
func (h *harness) expectHealthy() string {
	h.Helper()
	response := h.status()
	if response.GetVersion() != "v2" || response.GetHealthz() != "ok" || response.GetKeyId() == "" || len(response.GetKeyId()) > 1024 {
		h.Fatalf("found the status %v, want a healthy one", response)
	}
	return response.GetKeyId()
}

func (h *harness) status() *kmsapi.StatusResponse {
	h.Helper()
	response, err := h.client.Status(h.Context(), &kmsapi.StatusRequest{})
	if err != nil {
		h.Fatal(err)
	}
	return response
}

func (h *harness) encrypt() *kmsapi.EncryptResponse {
	h.Helper()
	response, err := h.client.Encrypt(h.Context(), &kmsapi.EncryptRequest{Plaintext: secret, Uid: "uid-of-encrypt"})
	if err != nil {
		h.Fatal(err)
	}
	return response
}

func (h *harness) decrypt(of *kmsapi.EncryptResponse) ([]byte, error) {
	response, err := h.client.Decrypt(h.Context(), &kmsapi.DecryptRequest{
		Ciphertext: of.GetCiphertext(), KeyId: of.GetKeyId(), Annotations: of.GetAnnotations(), Uid: "uid-of-decrypt",
	})
	return response.GetPlaintext(), err
}

// lockedBuffer is a buffer that several goroutines write to.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
