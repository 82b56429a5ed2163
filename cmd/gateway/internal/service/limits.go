// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// Limits of a gateway. A call takes up to 160 KiB while it is served.
const (
	// MaxConnections and maxConnectionsOfAddress are the maximum numbers of connections at one
	// time. Several pods have one address where a node hides the addresses of its pods.
	MaxConnections          = 16384
	maxConnectionsOfAddress = 2048
	// maxCalls, maxCallsOfAddress and maxRequestsOfPod are the maximum numbers of calls at one
	// time. Further ones are refused.
	maxCalls          = 1024
	maxCallsOfAddress = 256
	maxRequestsOfPod  = 64
	// maxDeadline is how long a call may last. Calls without a deadline are refused, so nobody
	// can hold a call by sending half of it.
	maxDeadline = 30 * time.Second
	// maxVersionLength is the longest name of a version, in bytes.
	maxVersionLength = 64
)

// counts has the current numbers of things by name.
type counts struct {
	all, each int

	mu    sync.Mutex
	total int
	of    map[string]int
}

func newCounts(all, each int) *counts { return &counts{all: all, each: each, of: map[string]int{}} }

// enter reports whether there is room for one more of this name, and counts it.
func (c *counts) enter(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total >= c.all || c.of[name] >= c.each {
		return false
	}
	c.total++
	c.of[name]++
	return true
}

func (c *counts) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if c.of[name]--; c.of[name] == 0 {
		delete(c.of, name)
	}
}

func (c *counts) now() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// admit refuses calls beyond the limits before their messages are read. It implements
// tap.ServerInHandle.
func (s *Server) admit(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if until, ok := ctx.Deadline(); !ok || time.Until(until) > maxDeadline {
		return nil, status.Errorf(codes.FailedPrecondition, "the call has no deadline within %s, expected one", maxDeadline)
	}
	address := addressOf(ctx)
	if !s.calls.enter(address) {
		return nil, status.Error(codes.ResourceExhausted, "the key gateway has too many calls at one time")
	}
	// gRPC cancels the context of a call at every kind of end.
	context.AfterFunc(ctx, func() { s.calls.leave(address) })
	return ctx, nil
}

// addressOf returns the address of a client without its port.
func addressOf(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	return hostOf(p.Addr)
}

func hostOf(address net.Addr) string {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	return host
}

// listener closes connections beyond the limits as soon as they are accepted.
type listener struct {
	net.Listener
	open *counts
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := hostOf(conn.RemoteAddr())
		if l.open.enter(host) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { l.open.leave(host) })}, nil
		}
		if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return nil, err
		}
	}
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}
