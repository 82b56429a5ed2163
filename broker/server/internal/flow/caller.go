// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
)

// What the limits of a caller are made of, in bytes.
const (
	// memoryPerCall is what a call counts for: callWindow, its headers, and what gRPC
	// and Go keep of it. Calls of clients that break HTTP/2 can take three times as
	// much, and shares leave room for that. A connection counts for as much.
	memoryPerCall = 32 << 10
	// SmallMessage is the size up to which a message is part of that.
	SmallMessage = 8 << 10
	// minMemory is what the messages of a caller may always take together: a
	// request of the largest size, and its reply.
	minMemory = 4 << 20
)

// callsPerStream is how many calls a caller may have for each stream that it may
// have open: a stream takes more, see package stream.
const callsPerStream = 4

// Share is what one caller may have at one time.
type Share struct {
	connections, calls, streams int64
	// memory is for messages of more than SmallMessage, in bytes.
	memory int64
}

// ShareOf returns what one of so many callers may have of memory in bytes and of
// connections. Shares are equal and fixed, so that no caller ever waits for what another
// one has.
func ShareOf(memory int64, connections, callers int) Share {
	each := func(n int64) int64 { return max(1, n/int64(callers)) }
	calls := each(memory / memoryPerCall)
	return Share{
		connections: min(calls, each(int64(connections))),
		calls:       calls,
		streams:     max(1, calls/callsPerStream),
		memory:      max(each(memory), min(memory, minMemory)),
	}
}

// Caller is the clients of one socket together, with what they hold of their share.
type Caller struct {
	// name names the container. It is empty where one socket is for all callers.
	name string
	Share
	processors *work.Processors
	messages   *semaphore.Weighted
	gate       *gate
	// Turns has the calls that wait for a worker.
	Turns work.Caller

	calls, streams atomic.Int64
	// arriving is how many calls have come that have no slot yet. Calls of methods that the
	// broker does not know never take one.
	arriving atomic.Int64
	// allowance is how many bytes may come beside calls and messages, see allowanceBytes.
	allowance atomic.Int64
	// begun is how many calls have begun since the last pause of the gate.
	begun atomic.Int32
	// misuses counts calls of noteMisuse since misusesSince. throttledAt is when they were
	// too many. Both times are in nanoseconds since 1970, 0 for never.
	misuses                   atomic.Int32
	misusesSince, throttledAt atomic.Int64

	mu    sync.Mutex
	conns map[*Conn]struct{}
}

// NewCaller makes a caller with a share. used are the processors of the process.
func NewCaller(name string, share Share, used *work.Processors) *Caller {
	c := &Caller{
		name: name, Share: share,
		processors: used,
		messages:   semaphore.NewWeighted(share.memory),
		gate:       newGate(max(1, runtime.GOMAXPROCS(0)-1)),
		conns:      map[*Conn]struct{}{},
	}
	c.allowance.Store(c.maxAllowance())
	return c
}

// admit makes room for a connection. Where the caller has as many as it may, the
// one that has had no call for longest gives way: a client connects again once it
// needs to. Where all have calls, admit reports false.
func (c *Caller) admit(conn *Conn) bool {
	c.mu.Lock()
	var idle *Conn
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
func (c *Caller) forget(conn *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

// overdue returns the connections whose clients have had longer than patience to send
// the rest of a request, or to read.
func (c *Caller) overdue(now time.Time, patience time.Duration) []*Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	var late []*Conn
	for conn := range c.conns {
		if conn.overdue(now, patience) {
			late = append(late, conn)
		}
	}
	return late
}

// EnterStream counts a stream until [Caller.LeaveStream]. It returns RESOURCE_EXHAUSTED
// for a stream too many.
func (c *Caller) EnterStream(what fmt.Stringer) error {
	if !take(&c.streams, c.Share.streams) {
		return c.tooMany(what, c.Share.streams, "streams")
	}
	return nil
}

// LeaveStream ends a stream that [Caller.EnterStream] counted.
func (c *Caller) LeaveStream() { c.streams.Add(-1) }

// TryMemory takes memory for messages, in bytes. It reports whether there was enough.
func (c *Caller) TryMemory(bytes int64) bool { return c.messages.TryAcquire(bytes) }

// ReleaseMemory gives back memory of messages, in bytes.
func (c *Caller) ReleaseMemory(bytes int64) { c.messages.Release(bytes) }

// NoRoom returns RESOURCE_EXHAUSTED for a reply of size bytes that finds no memory.
func (c *Caller) NoRoom(what fmt.Stringer, size int) error {
	return status.Errorf(codes.ResourceExhausted, "%s: the messages of %s have filled its %d bytes of memory, and the reply needs %d, try again later", what, c.label(), c.memory, size)
}

// Calls returns how many calls the caller has now.
func (c *Caller) Calls() int64 { return c.calls.Load() }

func take(count *atomic.Int64, most int64) bool {
	if count.Add(1) > most {
		count.Add(-1)
		return false
	}
	return true
}

// label names the caller in refusals.
func (c *Caller) label() string {
	if c.name == "" {
		return "the clients of this socket"
	}
	return fmt.Sprintf("the container %q", c.name)
}

// tooMany returns RESOURCE_EXHAUSTED for what is beyond a limit of the caller.
func (c *Caller) tooMany(what fmt.Stringer, most int64, things string) error {
	return status.Errorf(codes.ResourceExhausted, "%s: %s may have %d %s at one time and has them, try again later", what, c.label(), most, things)
}
