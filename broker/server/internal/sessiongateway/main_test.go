// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitLimit is far above what anything here takes; only a failure reaches it.
const waitLimit = time.Minute

const shopProfile = "- Name: Shop\n  API: {Session: {Protocols: [session-v1, session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}}\n"

// settings are what a test may change of a gateway.
type settings struct {
	Options
	times
	profiles    string
	memory      int64
	connections int
}

// fixture is a gateway in front of an application.
type fixture struct {
	*Gateway
	t       testing.TB
	address string
	app     *httptest.Server
	caller  *flow.Caller
	log     *logBuffer
}

// logBuffer is a log that a test reads.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start serves an application behind a gateway until the test ends.
func start(t testing.TB, app http.HandlerFunc, change ...func(*settings)) *fixture {
	t.Helper()
	f := &fixture{t: t, app: httptest.NewServer(app), log: &logBuffer{}}
	t.Cleanup(f.app.Close)
	s := settings{
		Options: Options{Name: "crypto-broker", Profile: "Shop", AppPort: portOf(t, f.app.Listener.Addr().String()), Plain: []string{"/healthz"}},
		times:   defaultTimes, profiles: shopProfile, memory: 128 << 20, connections: 1024,
	}
	for _, c := range change {
		c(&s)
	}
	logger := slog.New(slog.NewTextHandler(f.log, nil))
	service := rpc.NewService(context.Background(), logger, telemetry.NewMetrics("test"))
	set, problems := profile.Compile(profile.FileName, []byte(s.profiles))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	service.Use(set, 0)
	f.Gateway = newGateway(service, logger, s.Options, s.times)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = listener.Addr().String()
	served := make(chan error, 1)
	f.caller = flow.NewCaller(s.Name, flow.ShareOf(s.memory, s.connections, 1), &service.Workers.Processors)
	go func() { served <- f.Serve(listener, f.caller) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		f.Shutdown(ctx)
		if err := errors.Join(<-served, ctx.Err()); err != nil {
			t.Error(err)
		}
		service.Sessions.Close()
		service.DataKeys.Close()
	})
	return f
}

func portOf(t testing.TB, address string) uint16 {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(port)
}

// await waits until a condition is true.
func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(waitLimit)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// calls returns how many requests the gateway has.
func (f *fixture) calls() int64 { return f.caller.Calls() }
