// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
)

// testGateway is a gateway whose key manager answers when the test lets it.
type testGateway struct {
	gatewayv1.UnimplementedKeyGatewayServiceServer
	healthpb.UnimplementedHealthServer

	address, token, authorities string
	log                         *lines
	wraps, asked                atomic.Int64
	// answer is closed when the key manager answers.
	answer chan struct{}
}

func (g *testGateway) Wrap(ctx context.Context, _ *gatewayv1.WrapRequest) (*gatewayv1.WrapResponse, error) {
	g.wraps.Add(1)
	select {
	case <-g.answer:
		return &gatewayv1.WrapResponse{Wrapped: []byte("wrapped")}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g *testGateway) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	g.asked.Add(1)
	return &healthpb.HealthCheckResponse{}, nil
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func startTestGateway(t *testing.T) *testGateway {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // only its certificate is used
	t.Cleanup(certified.Close)
	dir, listener := t.TempDir(), listen(t)
	g := &testGateway{
		address: listener.Addr().String(), token: filepath.Join(dir, "token"), authorities: filepath.Join(dir, "ca.crt"), log: &lines{}, answer: make(chan struct{}),
	}
	for path, content := range map[string][]byte{
		g.token: []byte("token"), g.authorities: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, Certificates: certified.TLS.Certificates})),
		grpc.MaxConcurrentStreams(MaxCallsOfConnection))
	gatewayv1.RegisterKeyGatewayServiceServer(server, g)
	healthpb.RegisterHealthServer(server, g)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return g
}

// client returns a client of an address, with its own time limits for silence.
func (g *testGateway) client(t *testing.T, address string, after, limit time.Duration) *Client {
	t.Helper()
	c, err := New(Options{Address: address, TokenFile: g.token, AuthoritiesFile: g.authorities, Logger: slog.New(slog.NewTextHandler(g.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.silence.after, c.silence.limit = after, limit
	return c
}

func (c *Client) wrapOnce(ctx context.Context) error {
	_, err := wrapper{remote{c, &gatewayv1.KeyUse{}}, nil}.Wrap(ctx, "", nil, nil)
	return err
}

// eventually waits until a condition holds.
func eventually(t *testing.T, condition string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", condition)
		}
	}
}

func TestRequestsThatWaitForAKeyManagerAreMadeOnceHoweverManyTheyAre(t *testing.T) {
	g := startTestGateway(t)
	c := g.client(t, g.address, time.Millisecond, time.Minute)
	const count = MaxCallsOfConnection + 20
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			if err := c.wrapOnce(t.Context()); err != nil {
				t.Errorf("a request: %v", err)
			}
		})
	}
	eventually(t, "the connection has as many requests as it may", func() bool { return g.wraps.Load() == maxRequests })
	before := g.asked.Load()
	eventually(t, "the gateway answers that it is there", func() bool { return g.asked.Load() > before+3 })
	close(g.answer)
	all.Wait()
	if made := g.wraps.Load(); made != count || g.log.has("does not answer") {
		t.Errorf("%d requests were made, want %d, and the log has %q", made, count, &g.log.text)
	}
}

// between is a proxy between a client and a gateway. It can hold back all data of its connections, as if the process of the gateway
// was stopped.
type between struct {
	listener net.Listener
	held     atomic.Bool
	made     atomic.Int64
}

func startBetween(t *testing.T, to string) *between {
	t.Helper()
	b := &between{listener: listen(t)}
	var carrying sync.WaitGroup
	carry := func(from, to net.Conn, mine int64) {
		defer func() { _, _ = from.Close(), to.Close() }() // the other direction may have closed them
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			if b.held.Load() && mine == 1 {
				continue
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	carrying.Go(func() {
		for {
			client, err := b.listener.Accept()
			if err != nil {
				return
			}
			gateway, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
			if err != nil {
				t.Errorf("no connection to the gateway: %v", err)
				_ = client.Close() // the cleanup closes it once
				return
			}
			mine := b.made.Add(1)
			carrying.Go(func() { carry(client, gateway, mine) })
			carrying.Go(func() { carry(gateway, client, mine) })
		}
	})
	t.Cleanup(func() {
		_ = b.listener.Close() // the cleanup closes it once
		carrying.Wait()
	})
	return b
}

func TestAConnectionOverWhichNothingIsAnsweredIsReplaced(t *testing.T) {
	g := startTestGateway(t)
	close(g.answer)
	way := startBetween(t, g.address)
	c := g.client(t, way.listener.Addr().String(), 10*time.Millisecond, time.Second)
	eventually(t, "a request succeeds", func() bool { return c.wrapOnce(t.Context()) == nil })
	way.held.Store(true)
	eventually(t, "a request succeeds over another connection", func() bool { return c.wrapOnce(t.Context()) == nil && way.made.Load() > 1 })
	if !g.log.has("the key gateway does not answer: connecting again") {
		t.Errorf("the connection was replaced for another reason: %s", &g.log.text)
	}
}
