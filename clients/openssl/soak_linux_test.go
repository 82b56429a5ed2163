// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// "make soak-openssl" runs this test for long, and compares the memory of the process as well.
func TestConnectionsOfAllKindsLeaveNothingBehind(t *testing.T) {
	duration, soak := 500*time.Millisecond, os.Getenv("SOAK_TIME")
	if soak != "" {
		var err error
		if duration, err = time.ParseDuration(soak); err != nil {
			t.Fatal(err)
		}
	}
	authority := newAuthority(t)
	echoing, silent := serve(t, authority.serverConfig(t), echo), silentServer(t)
	p := opensslProvider(t, openssl.Config{RootCAs: authority.pem, SessionCacheSize: 2})
	streams := dialGRPC(t, p, serveGRPC(t, authority))
	// A kind is a kind of connection or stream that has to succeed or has to fail.
	kinds := []struct {
		name  string
		fails bool
		run   func(context.Context) error
	}{
		{"a connection", false, func(context.Context) error { return connectOnce(p, echoing, "localhost", "hello") }},
		{"the wrong host", true, func(context.Context) error { return connectOnce(p, echoing, "example.com", "hello") }},
		{"a handshake that is canceled", true, func(ctx context.Context) error { return handshakeOnly(ctx, p, silent, 2*time.Millisecond) }},
		{"a handshake alone", false, func(ctx context.Context) error { return handshakeOnly(ctx, p, echoing, patience) }},
		{"a stream of gRPC", false, func(ctx context.Context) error { return exchange(ctx, streams, 10) }},
		{"a stream of gRPC that is canceled", true, func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return exchange(ctx, streams, 10)
		}},
	}
	var done atomic.Int64
	mix := func(duration time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), duration+patience)
		defer cancel()
		var working sync.WaitGroup
		end := time.Now().Add(duration)
		for range 4 {
			working.Go(func() {
				for i := 0; i < len(kinds) || time.Now().Before(end); i++ {
					kind := kinds[i%len(kinds)]
					if err := kind.run(ctx); (err != nil) != kind.fails {
						t.Errorf("%s: got %v", kind.name, err)
						return
					}
					done.Add(1)
				}
			})
		}
		working.Wait()
	}
	mix(duration / 5)
	if t.Failed() {
		return
	}
	// The connection of gRPC stays open. Other tests leave some connections to the garbage collector.
	onlyGRPC := func() bool {
		runtime.GC()
		return openssl.Live()[1] == 1
	}
	waitFor(t, "connections to be freed", onlyGRPC)
	before := residentMemory(t)
	mix(duration)
	waitFor(t, "connections to be freed", onlyGRPC)
	after := residentMemory(t)
	t.Logf("%d connections and streams, resident memory %d KiB before and %d KiB after", done.Load(), before>>10, after>>10)
	// A connection has more than 10 KiB in C, so that a loss of one in a thousand shows after some minutes.
	const limit = 16 << 20
	if soak != "" && after > before+limit {
		t.Errorf("%d connections and streams left %d KiB behind, expected less than %d KiB", done.Load(), (after-before)>>10, limit>>10)
	}
}

// handshakeOnly connects, and closes the connection after the handshake.
func handshakeOnly(ctx context.Context, p provider, address string, timeout time.Duration) error {
	raw, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	conn, err := p.connect(raw, "localhost")
	if err != nil {
		return errors.Join(err, raw.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return fmt.Errorf("handshake: %w", err)
	}
	return conn.Close()
}
