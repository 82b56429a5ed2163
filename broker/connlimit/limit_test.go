// SPDX-License-Identifier: Apache-2.0

package connlimit_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/connlimit"
)

// serve serves until the test ends.
func serve(t *testing.T, most int, secure bool, handler http.HandlerFunc) (*connlimit.Limit, *httptest.Server) {
	t.Helper()
	limit := connlimit.New(most)
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = limit.Changed
	server.Listener = limit.Listener(server.Listener)
	if server.EnableHTTP2 = secure; secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return limit, server
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func get(t *testing.T, server *httptest.Server) {
	t.Helper()
	answer, err := server.Client().Get(server.URL)
	if err != nil {
		t.Error(err)
		return
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Error(err)
	}
}

func TestAConnectionCountsUntilItIsClosed(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", secure), func(t *testing.T) {
			limit, server := serve(t, 10, secure, func(http.ResponseWriter, *http.Request) {})
			get(t, server)
			if got := limit.Count(); got != 1 {
				t.Errorf("found %d connections, want 1", got)
			}
			server.Client().CloseIdleConnections()
			await(t, "the connection has ended", func() bool { return limit.Count() == 0 })
		})
	}
}

// serveBusy does the same, with a connection whose request lasts until end is called.
func serveBusy(t *testing.T, most int, secure bool) (limit *connlimit.Limit, server *httptest.Server, end func()) {
	t.Helper()
	working, goOn := make(chan struct{}), make(chan struct{})
	limit, server = serve(t, most, secure, func(http.ResponseWriter, *http.Request) {
		close(working)
		<-goOn
	})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		get(t, server)
	}()
	<-working
	return limit, server, func() {
		close(goOn)
		<-answered
	}
}

func TestAConnectionWithARequestStaysAndQuietOnesEnd(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", secure), func(t *testing.T) {
			limit, server, end := serveBusy(t, 2, secure)
			defer end()
			for range 3 { // each takes the place of the one before
				conn, err := net.Dial("tcp", server.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }() // nothing was sent
				await(t, "the connection is there", func() bool { return limit.Count() == 2 })
			}
		})
	}
}

func TestWhileAllConnectionsHaveRequestsThereAreNoMore(t *testing.T) {
	_, server, end := serveBusy(t, 1, false)
	defer end()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, conn); n != 0 || err != nil {
		t.Errorf("the connection has not ended: %d bytes, %v", n, err)
	}
}
