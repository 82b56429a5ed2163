// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitLimit is far above what anything here takes; only a failure reaches it.
const waitLimit = time.Minute

// broker is a server on sockets of its own.
type broker struct {
	*server.Server
	dir     string
	sockets *unixsocket.Sockets
	metrics *telemetry.Metrics
	served  chan error
}

// start serves a set of profiles, or no set yet if the text is empty.
func start(t testing.TB, profiles string, callers ...string) *broker {
	t.Helper()
	return startWith(t, profiles, callers)
}

// startWith does the same with options.
func startWith(t testing.TB, profiles string, callers []string, options ...server.Option) *broker {
	t.Helper()
	return startLogged(t, profiles, callers, slog.New(slog.DiscardHandler), options...)
}

// startLogged does the same with a log.
func startLogged(t testing.TB, profiles string, callers []string, logger *slog.Logger, options ...server.Option) *broker {
	t.Helper()
	return startBoth(t, profiles, unixsocket.Options{Callers: callers}, logger, options...)
}

// startOn does the same with further settings of the sockets.
func startOn(t testing.TB, profiles string, sockets unixsocket.Options, options ...server.Option) *broker {
	t.Helper()
	return startBoth(t, profiles, sockets, slog.New(slog.DiscardHandler), options...)
}

// startBoth does the same with a log and with further settings of the sockets.
func startBoth(t testing.TB, profiles string, sockets unixsocket.Options, logger *slog.Logger, options ...server.Option) *broker {
	t.Helper()
	b := &broker{dir: socketDir(t), metrics: telemetry.NewMetrics("test"), served: make(chan error, 1)}
	b.Server = server.New(logger, b.metrics, options...)
	if profiles != "" {
		b.use(t, profiles)
	}
	var err error
	sockets.Dir, sockets.Group = b.dir, -1
	b.sockets, err = unixsocket.Listen(sockets)
	if err != nil {
		t.Fatal(err)
	}
	go func() { b.served <- b.Serve(b.sockets) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		if err := b.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := errors.Join(<-b.served, b.sockets.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// socketDir is a directory whose path is short enough for a socket. The path of
// t.TempDir has the test's name in it.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "broker")
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

// servedRevision is the revision of the sets of tests.
const servedRevision = 7

func (b *broker) use(t testing.TB, profiles string) {
	t.Helper()
	set, problems := profile.Compile(profile.FileName, []byte(profiles))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	b.Use(set, servedRevision)
}

func (b *broker) socket(caller string) string {
	return filepath.Join(b.dir, caller, contract.SocketFile)
}

// connect makes a client of a socket.
func connect(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// Larger than all limits of the broker, so that only the broker's limits apply.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20), grpc.MaxCallSendMsgSize(16<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// dial tries to connect to a socket.
func dial(t testing.TB, socket string) error {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "unix", socket)
	if err != nil {
		return err
	}
	return conn.Close()
}

// wire passes messages as the bytes they are. A test that used our own
// descriptions on both ends would not notice a wrong number in them.
type wire struct{}

func (wire) Name() string { return "proto" }

func (wire) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (wire) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// call sends the bytes of a request to a method and returns the bytes of the reply.
func call(t testing.TB, conn *grpc.ClientConn, method string, request []byte) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	var reply []byte
	err := conn.Invoke(ctx, method, request, &reply, grpc.ForceCodecV2(wire{}))
	return reply, err
}

// metricsText returns the document at /metrics.
func (b *broker) metricsText(t testing.TB) string {
	t.Helper()
	status := telemetry.Status{Metrics: b.metrics, Logger: slog.New(slog.DiscardHandler)}
	recorder := httptest.NewRecorder()
	status.Server().Handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}
