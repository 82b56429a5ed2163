// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// waitLimit is far above what anything here takes; only a failure reaches it.
const waitLimit = 20 * time.Second

// counting counts the connections of a listener that are open on its side.
type counting struct {
	net.Listener
	now, most atomic.Int64
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	now := c.now.Add(1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	return &counted{Conn: conn, of: c}, nil
}

type counted struct {
	net.Conn
	of     *counting
	closed atomic.Bool
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.of.now.Add(-1)
	}
	return c.Conn.Close()
}

// servePort serves a status port until the test ends.
func servePort(t *testing.T) *counting {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counting := &counting{Listener: listener}
	port := status(telemetry.NewMetrics("test")).Server()
	ended := make(chan error, 1)
	go func() { ended <- port.Serve(counting) }()
	t.Cleanup(func() {
		if err := port.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return counting
}

func dialPort(t *testing.T, listener net.Listener, send string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, send); err != nil {
		t.Fatal(err)
	}
	return conn
}

const probe = "GET /healthz HTTP/1.1\r\nHost: broker\r\n\r\n"

// answered reads the status of an answer and leaves the connection open.
func answered(t *testing.T, conn net.Conn) int {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // all of it is read, or the test has failed
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

func TestAProbeIsAnsweredHoweverManyConnectionsAreKeptOpen(t *testing.T) {
	for sentence, send := range map[string]string{
		"that say nothing":           "",
		"that stop in a request":     "GET /healthz HTTP/1.1\r\nHost: br",
		"that have had an answer":    probe,
		"that ask for more and more": strings.Repeat(probe, 8),
	} {
		t.Run("connections "+sentence, func(t *testing.T) {
			listener := servePort(t)
			goroutines := runtime.NumGoroutine()
			for range 5 * telemetry.MaxStatusConnections {
				dialPort(t, listener, send)
			}
			for range 3 {
				if code := answered(t, dialPort(t, listener, probe)); code != http.StatusOK {
					t.Errorf("a probe was answered with %d", code)
				}
			}
			if most := listener.most.Load(); most > telemetry.MaxStatusConnections+1 {
				t.Errorf("%d connections were open at one time, want %d and the one that is new", most, telemetry.MaxStatusConnections)
			}
			// Each has one goroutine, and one more while it is answered.
			for deadline := time.Now().Add(waitLimit); runtime.NumGoroutine() > goroutines+2*telemetry.MaxStatusConnections; runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatalf("%d goroutines are left", runtime.NumGoroutine()-goroutines)
				}
			}
		})
	}
}

func TestTheConnectionThatWasQuietLongestMakesRoom(t *testing.T) {
	listener := servePort(t)
	first := dialPort(t, listener, probe)
	answered(t, first)
	second := dialPort(t, listener, probe)
	answered(t, second)
	for range telemetry.MaxStatusConnections - 2 {
		answered(t, dialPort(t, listener, probe))
	}
	if _, err := io.WriteString(first, probe); err != nil {
		t.Fatal(err)
	}
	answered(t, first)
	answered(t, dialPort(t, listener, probe))
	if n, err := second.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the second is open still: %v", err)
	}
	if _, err := io.WriteString(first, probe); err != nil {
		t.Fatal(err)
	}
	if code := answered(t, first); code != http.StatusOK {
		t.Errorf("the first was answered with %d", code)
	}
}

func TestTheBodyOfARequestIsNotRead(t *testing.T) {
	listener := servePort(t)
	conn := dialPort(t, listener, "GET /healthz HTTP/1.1\r\nHost: broker\r\nContent-Length: 100000\r\n\r\nx")
	if code := answered(t, conn); code != http.StatusRequestEntityTooLarge {
		t.Errorf("answered with %d", code)
	}
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is open still: %v", err)
	}
}
