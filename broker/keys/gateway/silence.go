// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// silence ends the connection to a gateway that accepts data and answers nothing, for example
// because its process is stopped or its node hangs. gRPC then repeats the unanswered requests
// over a new connection. The keepalive of gRPC does the same, but not before 15 seconds.
//
// A gateway that waits for a key manager is not silent. So the broker asks a question that every
// gateway answers at once, and only when a request has waited for a while.
type silence struct {
	// after is how long a request waits before a question, and between two questions. limit is
	// how long the answer may take.
	after, limit time.Duration
	health       healthpb.HealthClient
	connections  *connections
	log          *occasional

	asking sync.Mutex
}

// watch watches the connection until the context of the waiting request ends.
func (s *silence) watch(waiting context.Context) (stop func() bool) {
	return time.AfterFunc(s.after, func() {
		for waiting.Err() == nil {
			s.ask()
			select {
			case <-waiting.Done():
			case <-time.After(s.after):
			}
		}
	}).Stop
}

// ask ends the connection if the gateway does not answer in time. It does nothing while another
// request asks. Every answer counts, even the answer that the gateway does not have the method.
func (s *silence) ask() {
	if !s.asking.TryLock() {
		return
	}
	defer s.asking.Unlock()
	asked := s.connections.open.Load()
	if asked == nil {
		return // connectTime bounds how long gRPC tries to connect
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.limit)
	defer cancel()
	_, err := s.health.Check(ctx, &healthpb.HealthCheckRequest{})
	if ctx.Err() == nil || status.Code(err) != codes.DeadlineExceeded {
		return
	}
	// If the connection was replaced meanwhile, the request may have waited for the new connection.
	if s.connections.open.Load() == asked {
		s.log.silent(s.limit)
		_ = asked.Close() // it fails only if it is closed already
	}
}

// connections has the newest connection, while it is open.
type connections struct{ open atomic.Pointer[connection] }

// connection is a TCP connection to a gateway, below TLS.
type connection struct {
	net.Conn
	of *connections
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.open.CompareAndSwap(c, nil)
	return c.Conn.Close()
}
