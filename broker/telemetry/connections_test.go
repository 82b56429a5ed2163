// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
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

// servePort serves a status port until the test ends. Each change of a connection's
// state is sent to changes, once the port knows it.
func servePort(t *testing.T, status *telemetry.Status, changes chan<- http.ConnState) *counting {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counting := &counting{Listener: listener}
	port := status.Server()
	if changed := port.ConnState; changes != nil {
		port.ConnState = func(conn net.Conn, state http.ConnState) {
			changed(conn, state)
			changes <- state
		}
	}
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

// One of the clients floods the port, and the others do not.
const (
	flooder = "127.0.0.1"
	prober  = "127.0.0.2"
)

func dialFrom(local string, listener net.Listener) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}, Timeout: waitLimit}
	return dialer.Dial("tcp", listener.Addr().String())
}

func dialPort(t *testing.T, local string, listener net.Listener, send string) net.Conn {
	t.Helper()
	conn, err := dialFrom(local, listener)
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

// await waits until this many connections have reached a state.
func await(t *testing.T, changes <-chan http.ConnState, n int, state http.ConnState) {
	t.Helper()
	for limit := time.After(waitLimit); n > 0; {
		select {
		case found := <-changes:
			if found == state {
				n--
			}
		case <-limit:
			t.Fatalf("%d connections are not %s", n, state)
		}
	}
}

func TestAProbeIsAnsweredHoweverManyConnectionsAreKeptOpen(t *testing.T) {
	const probes = 3
	for sentence, send := range map[string]string{
		"that say nothing":           "",
		"that stop in a request":     "GET /healthz HTTP/1.1\r\nHost: br",
		"that have had an answer":    probe,
		"that ask for more and more": strings.Repeat(probe, 8),
	} {
		t.Run("connections "+sentence, func(t *testing.T) {
			listener := servePort(t, status(telemetry.NewMetrics("test")), nil)
			goroutines := runtime.NumGoroutine()
			for range 5 * telemetry.MaxStatusConnections {
				conn, err := dialFrom(flooder, listener)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				_, _ = io.WriteString(conn, send) // the port may have closed it
			}
			for range probes {
				if code := answered(t, dialPort(t, prober, listener, probe)); code != http.StatusOK {
					t.Errorf("a probe was answered with %d", code)
				}
			}
			if most := listener.most.Load(); most > telemetry.MaxAddressConnections+probes+1 {
				t.Errorf("%d connections were open at one time, want %d, %d of probes and the one that makes room", most, telemetry.MaxAddressConnections, probes)
			}
			// Each has one goroutine, and one more while it is answered.
			for deadline := time.Now().Add(waitLimit); runtime.NumGoroutine() > goroutines+2*(telemetry.MaxAddressConnections+probes); runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatalf("%d goroutines are left", runtime.NumGoroutine()-goroutines)
				}
			}
		})
	}
}

func TestEveryProbeIsAnsweredWhileAnotherAddressConnectsAgainAndAgain(t *testing.T) {
	for sentence, send := range map[string]string{
		"and says nothing":        "",
		"and stops in a request":  "GET /healthz HTTP/1.1\r\nHost: br",
		"and asks and then stays": probe,
	} {
		t.Run(sentence, func(t *testing.T) {
			listener := servePort(t, status(telemetry.NewMetrics("test")), nil)
			var flooded atomic.Int64
			flood, stop := context.WithCancel(t.Context())
			var flooders sync.WaitGroup
			for range 2 * telemetry.MaxStatusConnections {
				flooders.Go(func() {
					for flood.Err() == nil {
						conn, err := dialFrom(flooder, listener)
						if err != nil {
							continue
						}
						flooded.Add(1)
						end := context.AfterFunc(flood, func() { _ = conn.Close() })
						_, _ = io.WriteString(conn, send) // the port may have closed it
						_, _ = io.Copy(io.Discard, conn)
						end()
						_ = conn.Close()
					}
				})
			}
			defer flooders.Wait()
			defer stop()
			for i := 0; i < 20 || flooded.Load() < 20*telemetry.MaxAddressConnections; i++ {
				conn := dialPort(t, prober, listener, probe)
				if code := answered(t, conn); code != http.StatusOK {
					t.Errorf("a probe was answered with %d", code)
				}
				_ = conn.Close()
			}
		})
	}
}

func TestTheConnectionOfAnAddressThatWasQuietLongestMakesRoom(t *testing.T) {
	changes := make(chan http.ConnState, 8*telemetry.MaxStatusConnections)
	listener := servePort(t, status(telemetry.NewMetrics("test")), changes)
	ask := func(conn net.Conn) {
		t.Helper()
		if _, err := io.WriteString(conn, probe); err != nil {
			t.Fatal(err)
		}
		if code := answered(t, conn); code != http.StatusOK {
			t.Fatalf("answered with %d", code)
		}
		await(t, changes, 1, http.StateIdle)
	}
	oldest := dialPort(t, prober, listener, "")
	ask(oldest)
	first := dialPort(t, flooder, listener, "")
	ask(first)
	second := dialPort(t, flooder, listener, "")
	ask(second)
	for range telemetry.MaxAddressConnections - 2 {
		ask(dialPort(t, flooder, listener, ""))
	}
	ask(first)
	ask(dialPort(t, flooder, listener, ""))
	if n, err := second.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the second is open still: %v", err)
	}
	ask(first)
	ask(oldest)
}

func TestARequestThatIsBeingAnsweredIsNotClosedToMakeRoom(t *testing.T) {
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	slow := status(telemetry.NewMetrics("test"))
	slow.Ready = func() string {
		<-answer
		return ""
	}
	changes := make(chan http.ConnState, 8*telemetry.MaxStatusConnections)
	listener := servePort(t, slow, changes)
	var waiting []net.Conn
	for range telemetry.MaxAddressConnections {
		waiting = append(waiting, dialPort(t, flooder, listener, "GET /readyz HTTP/1.1\r\nHost: broker\r\n\r\n"))
	}
	await(t, changes, len(waiting), http.StateActive)

	refused := dialPort(t, flooder, listener, "")
	if n, err := refused.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one more of the address is open: %v", err)
	}
	if code := answered(t, dialPort(t, prober, listener, probe)); code != http.StatusOK {
		t.Errorf("another address was answered with %d", code)
	}
	release()
	for _, conn := range waiting {
		if code := answered(t, conn); code != http.StatusOK {
			t.Errorf("answered with %d", code)
		}
	}
	await(t, changes, len(waiting)+1, http.StateIdle)
	if code := answered(t, dialPort(t, flooder, listener, probe)); code != http.StatusOK {
		t.Errorf("once there is room, the address was answered with %d", code)
	}
}

func TestTheBodyOfARequestIsNotRead(t *testing.T) {
	listener := servePort(t, status(telemetry.NewMetrics("test")), nil)
	conn := dialPort(t, prober, listener, "GET /healthz HTTP/1.1\r\nHost: broker\r\nContent-Length: 100000\r\n\r\nx")
	if code := answered(t, conn); code != http.StatusRequestEntityTooLarge {
		t.Errorf("answered with %d", code)
	}
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is open still: %v", err)
	}
}
