// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What the limits of a caller are made of, in bytes.
const (
	// memoryPerCall is what a call counts for: callWindow, its headers, and what gRPC
	// and Go keep of it. Calls of clients that break HTTP/2 can take three times as
	// much, and shares leave room for that. A connection counts for as much.
	memoryPerCall = 32 << 10
	// smallMessage is the size up to which a message is part of that.
	smallMessage = 8 << 10
	// leastMemory is what the messages of a caller may always take together: a
	// request of the largest size, and its reply.
	leastMemory = 4 << 20
)

// callsPerStream is how many calls a caller may have for each stream that it may
// have open: a stream takes more, see exchange.
const callsPerStream = 4

// defaultMemory is what WithMemory changes.
const defaultMemory = 128 << 20

// WithMemory bounds the bytes that the messages of all callers take while they
// are served, and thereby how many calls, streams and connections there may be:
// see docs/limits.md. Without it, that is 128 MiB. It should be no less than 4 MiB
// for each caller.
func WithMemory(bytes int64) Option {
	return func(s *Server) { s.memory = max(1, bytes) }
}

// WithMaxConnections bounds the connections of all callers together, below what
// their memory allows: each takes a file descriptor.
func WithMaxConnections(n int) Option {
	return func(s *Server) { s.maxConnections = max(1, n) }
}

// bounds are what one caller may have at one time.
type bounds struct {
	connections, calls, streams int64
	// memory is for messages of more than smallMessage, in bytes.
	memory int64
}

// shareOf is what one of so many callers may have. Shares are equal and fixed, so
// that no caller ever waits for what another one has.
func (s *Server) shareOf(callers int) bounds {
	each := func(n int64) int64 { return max(1, n/int64(callers)) }
	calls := each(s.memory / memoryPerCall)
	return bounds{
		connections: min(calls, each(int64(s.maxConnections))),
		calls:       calls,
		streams:     max(1, calls/callsPerStream),
		memory:      max(each(s.memory), min(s.memory, leastMemory)),
	}
}

// caller is who calls by one socket, with what they have of the broker.
type caller struct {
	// name is that of the container, empty where there is one socket for all.
	name string
	bounds
	processors *processors
	messages   *semaphore.Weighted
	gate       gate
	// turns are the calls that wait for a worker.
	turns turns

	calls, streams atomic.Int64
	// spared is how many bytes may come that are of no use, see sparedBytes.
	spared atomic.Int64
	// begun is how many calls have begun since the last pause of the gate.
	begun atomic.Int32
	// strains is how often strain was called since strainsSince, and strainedAt when it
	// was called too often, in nanoseconds since 1970, 0 for never.
	strains                  atomic.Int32
	strainsSince, strainedAt atomic.Int64

	mu    sync.Mutex
	conns map[*callerConn]struct{}
}

func newCaller(name string, share bounds) *caller {
	c := &caller{
		name: name, bounds: share,
		processors: &processors{},
		messages:   semaphore.NewWeighted(share.memory),
		gate:       newGate(max(1, runtime.GOMAXPROCS(0)-1)),
		conns:      map[*callerConn]struct{}{},
	}
	c.spared.Store(c.mostSpared())
	return c
}

// admit makes room for a connection. Where the caller has as many as it may, the
// one that has had no call for longest gives way: a client connects again once it
// needs to. Where all have calls, admit reports false.
func (c *caller) admit(conn *callerConn) bool {
	c.mu.Lock()
	var idle *callerConn
	full := int64(len(c.conns)) >= c.connections
	if full {
		var since time.Time
		for other := range c.conns {
			if quiet, at := other.idleSince(); quiet && (idle == nil || at.Before(since)) {
				idle, since = other, at
			}
		}
		if idle == nil || !idle.retire() {
			c.mu.Unlock()
			return false
		}
		delete(c.conns, idle)
	}
	conn.wide = len(c.conns) < wideConnections
	c.conns[conn] = struct{}{}
	c.mu.Unlock()
	if idle != nil {
		_ = idle.Close() // its client may have done so
	}
	return true
}

// forget is called when a connection is closed.
func (c *caller) forget(conn *callerConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

// late returns the connections whose clients have had longer than patience to send
// the rest of a request, or to read.
func (c *caller) late(now time.Time, patience time.Duration) []*callerConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	var late []*callerConn
	for conn := range c.conns {
		if conn.late(now, patience) {
			late = append(late, conn)
		}
	}
	return late
}

// takeStream counts a stream; false where there are too many.
func (c *caller) takeStream() bool { return take(&c.streams, c.bounds.streams) }

// busy reports whether the caller has half of the calls that it may have.
func (c *caller) busy() bool { return c.calls.Load() > c.bounds.calls/2 }

func take(count *atomic.Int64, most int64) bool {
	if count.Add(1) > most {
		count.Add(-1)
		return false
	}
	return true
}

// who names the caller in refusals.
func (c *caller) who() string {
	if c.name == "" {
		return "the clients of this socket"
	}
	return fmt.Sprintf("the container %q", c.name)
}

// tooMany refuses what is beyond a limit of the caller. Clients may try again.
func (c *caller) tooMany(what fmt.Stringer, most int64, things string) error {
	return status.Errorf(codes.ResourceExhausted, "%s: %s may have %d %s at one time and has them, try again later", what, c.who(), most, things)
}
