// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Every pod may reach the port, and the kubelet has to.
func TestTheStatusPortAnswersWhileSomebodyHoldsManyConnections(t *testing.T) {
	status := newStatus(http.NewServeMux(), func() string { return "" }, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err := status.listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- status.serve() }()
	t.Cleanup(func() {
		if err := errors.Join(status.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	var all []net.Conn
	for range 2 * maxStatusConnections {
		conn, err := net.Dial("tcp", status.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }() // nothing was sent
		all = append(all, conn)
	}
	reply, err := http.Get("http://" + status.listener.Addr().String() + "/readyz")
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("found %v, %v", reply, err)
	}
	_ = reply.Body.Close()
	if got := status.connections.Count(); got > maxStatusConnections {
		t.Errorf("found %d connections, expected at most %d", got, maxStatusConnections)
	}
	if err := all[0].SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, all[0]); err != nil { // until the server closes the connection
		t.Errorf("the first connection has not ended: %v", err)
	}
}
