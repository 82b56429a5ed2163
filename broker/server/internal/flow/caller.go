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

// Sizes in bytes from which the limits of a caller are computed.
const (
	// memoryPerCall is the planned memory of a call: callWindow, its headers, and the allocations
	// of gRPC and Go. Calls of clients that violate HTTP/2 can take three times as much, and
	// shares leave room for that. The planned memory of a connection is the same.
	memoryPerCall = 32 << 10
	// SmallMessage is the size of the largest message that needs no memory beside
	// memoryPerCall.
	SmallMessage = 8 << 10
	// minMemory is the smallest share of memory for the messages of a caller. It is enough for a
	// request of the largest size and its reply.
	minMemory = 4 << 20
)

// callsPerStream is the number of calls of a share for each stream of it. A stream takes
// more memory than a call, see package stream.
const callsPerStream = 4

// Share is the maximum number of connections, calls and streams, and the maximum amount of
// memory, of one caller at one time.
type Share struct {
	connections, calls, streams int64
	// memory is for messages of more than SmallMessage, in bytes.
	memory int64
}

// ShareOf returns the share of one caller, if this many callers share the memory in bytes
// and the connections. Shares are equal and fixed, so no caller waits because of another
// caller.
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

// Caller stands for all clients of one socket together. It counts what they use of their share.
type Caller struct {
	// name is the name of the container. It is empty if one socket is for all callers.
	name string
	Share
	processors *work.Processors
	messages   *semaphore.Weighted
	// transfers is the number of bytes that messages may transfer at one time, at most
	// maxTransfers.
	transfers    *semaphore.Weighted
	maxTransfers int64
	gate         *gate
	// Turns has the calls that wait for a worker.
	Turns work.Caller

	calls, streams atomic.Int64
	// arriving is the number of calls that have arrived and have no slot yet. Calls of unknown
	// methods never take a slot.
	arriving atomic.Int64
	// allowance is the maximum number of bytes that clients may send outside of calls and
	// messages, see allowanceBytes.
	allowance atomic.Int64
	// begun is the number of calls that have begun since the last pause of the gate.
	begun atomic.Int32
	// misuses counts calls of noteMisuse since misusesSince. throttledAt is the time at which
	// misuses last reached its limit. Both times are numbers of package clock, or 0.
	misuses                   atomic.Int32
	misusesSince, throttledAt atomic.Int64

	// reclaimedAt is the time of the last reclaim, a number of package clock, or 0.
	reclaimedAt atomic.Int64

	mu    sync.Mutex
	conns map[*Conn]struct{}
}

// NewCaller returns a caller with a share. used are the processors of the process.
func NewCaller(name string, share Share, used *work.Processors) *Caller {
	c := &Caller{
		name: name, Share: share,
		processors: used,
		messages:   semaphore.NewWeighted(share.memory),
		gate:       newGate(max(1, runtime.GOMAXPROCS(0)-1)),
		conns:      map[*Conn]struct{}{},
	}
	c.transfers, c.maxTransfers = newTransfers(runtime.GOMAXPROCS(0))
	c.allowance.Store(c.maxAllowance())
	return c
}

// admit adds a connection. If the caller already has as many connections as it may have, admit
// closes the connection that has had no call for the longest time, whose client can connect
// again. If all connections have calls, admit adds nothing and reports false.
func (c *Caller) admit(conn *Conn) bool {
	c.mu.Lock()
	var idle *Conn
	if int64(len(c.conns)) >= c.connections {
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
		_ = idle.Close() // the client may have closed it already
	}
	return true
}

// Name returns the name of the container, empty if one socket is for all callers.
func (c *Caller) Name() string { return c.name }

// Connections returns how many connections the caller has.
func (c *Caller) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// forget removes a connection that is closed.
func (c *Caller) forget(conn *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

// overdue returns the connections whose clients have taken longer than patience to send
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
// if the caller already has as many streams as it may have. what names the stream in the
// error.
func (c *Caller) EnterStream(what fmt.Stringer) error {
	if !take(&c.streams, c.Share.streams) {
		c.arrived() // a refused stream takes no slot
		return c.tooMany(what, c.Share.streams, "streams")
	}
	return nil
}

// LeaveStream ends a stream that [Caller.EnterStream] counted.
func (c *Caller) LeaveStream() { c.streams.Add(-1) }

// TryMemory takes memory for messages, in bytes. It reports whether there was enough.
func (c *Caller) TryMemory(bytes int64) bool { return c.messages.TryAcquire(bytes) }

// ReleaseMemory releases memory of messages, in bytes.
func (c *Caller) ReleaseMemory(bytes int64) { c.messages.Release(bytes) }

// NoReplyMemory returns RESOURCE_EXHAUSTED for a reply of size bytes for which there is no memory.
func (c *Caller) NoReplyMemory(what fmt.Stringer, size int) error {
	return status.Errorf(codes.ResourceExhausted, "%s: no memory for the reply of %d bytes: other messages use the %d bytes of %s, try again later", what, size, c.memory, c.label())
}

// Calls returns how many calls the caller has now.
func (c *Caller) Calls() int64 { return c.calls.Load() }

// take adds one to count and reports true. If count has reached its limit, take adds nothing and
// reports false.
func take(count *atomic.Int64, limit int64) bool {
	if count.Add(1) > limit {
		count.Add(-1)
		return false
	}
	return true
}

// label returns the name of the caller for error messages.
func (c *Caller) label() string {
	if c.name == "" {
		return "the clients of this socket"
	}
	return fmt.Sprintf("the container %q", c.name)
}

// tooMany returns RESOURCE_EXHAUSTED for a call or a stream beyond a limit of the caller.
func (c *Caller) tooMany(what fmt.Stringer, limit int64, things string) error {
	return status.Errorf(codes.ResourceExhausted, "%s: %s may have at most %d %s at one time, try again later", what, c.label(), limit, things)
}
