// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// Slot is the part of its caller's share that a call holds: one of the calls, and memory
// for its messages. The call holds the slot until gRPC has written the reply. So a client
// that does not read its replies cannot have more calls than its share.
type Slot struct {
	conn *Conn
	// memory is the number of bytes that the slot holds.
	memory int64
	// reserved is the number of bytes of memory that the slot holds until it ends, for all
	// messages of a stream. It is 0 if each message takes its own.
	reserved int64
	// transfer is the transfer of the message that has the memory, or nil.
	transfer *transfer
	// reply is the buffer of the reply, nil before there is a reply.
	reply *[]byte

	// ended is closed once the client has the reply, or has given up the call.
	ended <-chan struct{}

	// The mutex of the connection guards the fields below. A slot is in the connection's
	// list while the broker waits for the client to send a request or to read a reply.
	since      time.Time
	prev, next *Slot
	// replied reports whether gRPC has the reply. left reports whether the slot was
	// removed from its connection.
	replied, left bool
}

var slots = sync.Pool{New: func() any { return new(Slot) }}

// Enter takes a slot for a call of a connection. what names the call in errors. Enter
// returns RESOURCE_EXHAUSTED if the caller already has as many calls as it may have.
func (c *Conn) Enter(what fmt.Stringer) (*Slot, error) {
	c.Caller.arrived()
	c.Caller.credit(limits.MaxHeaderSize)
	if !take(&c.Caller.calls, c.Caller.Share.calls) {
		c.Caller.noteMisuse()
		return nil, c.Caller.tooMany(what, c.Caller.Share.calls, "calls")
	}
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.calls++
	}
	c.mu.Unlock()
	if closed {
		c.Caller.calls.Add(-1)
		return nil, status.Errorf(codes.Unavailable, "%s: the connection is closed", what)
	}
	p := slots.Get().(*Slot)
	p.conn = c
	return p, nil
}

// awaitClient records that the broker waits for the client from now on.
func (p *Slot) awaitClient(now time.Time) {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	p.conn.link(p, now)
}

// clientDone records that the broker does not wait for the client any more.
func (p *Slot) clientDone() {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	p.conn.unlink(p)
}

// TakeMemory waits at most for patience until there is memory for a message of size bytes
// and for its result, and then until the message may be transferred. It takes all the memory
// at once, so no call that holds memory waits for more. It returns RESOURCE_EXHAUSTED after
// patience, and DEADLINE_EXCEEDED after the deadline of the call. what names the call in
// errors.
func (p *Slot) TakeMemory(ctx context.Context, what fmt.Stringer, size int, patience time.Duration) error {
	if size <= SmallMessage {
		return nil
	}
	if p.reserved == 0 {
		if err := p.acquire(ctx, what, 2*int64(size), patience); err != nil {
			return err
		}
	}
	share := p.conn.Caller
	var err error
	if p.transfer, err = share.beginTransfer(ctx, int64(size)); err != nil {
		if IsPast(ctx) {
			return status.Errorf(codes.DeadlineExceeded, "%s: the message was not read before the deadline of the call: %s transferred other messages", what, share.label())
		}
		return status.FromContextError(err).Err()
	}
	return nil
}

// Reserve waits at most for patience until there are this many bytes of memory, which the slot
// then holds until it ends. Its messages take no memory of their own afterwards. The slot must
// hold no memory yet. It returns the errors of TakeMemory.
func (p *Slot) Reserve(ctx context.Context, what fmt.Stringer, bytes int64, patience time.Duration) error {
	if err := p.acquire(ctx, what, bytes, patience); err != nil {
		return err
	}
	p.reserved = p.memory
	return nil
}

// ReserveInstead releases the reserved memory of the slot, and then does the same as Reserve.
func (p *Slot) ReserveInstead(ctx context.Context, what fmt.Stringer, bytes int64, patience time.Duration) error {
	p.reserved = 0
	p.ReleaseMemory()
	return p.Reserve(ctx, what, bytes, patience)
}

// acquire waits at most for patience until there are this many bytes of memory, or as many as
// the caller may have.
func (p *Slot) acquire(ctx context.Context, what fmt.Stringer, bytes int64, patience time.Duration) error {
	share := p.conn.Caller
	bytes = min(bytes, share.memory)
	if !share.messages.TryAcquire(bytes) {
		waiting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		defer share.reclaimMeanwhile()()
		if err := share.messages.Acquire(waiting, bytes); err != nil {
			switch {
			case ctx.Err() == nil:
				return status.Errorf(codes.ResourceExhausted, "%s: no memory for the message within %s: other messages use the %d bytes of %s, try again later", what, patience, share.memory, share.label())
			case IsPast(ctx):
				return status.Errorf(codes.DeadlineExceeded, "%s: no memory for the message before the deadline of the call: other messages use the %d bytes of %s", what, share.memory, share.label())
			}
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	p.memory += bytes
	return nil
}

// IsPast reports whether the deadline of a call has passed. The client cancels the call at
// that time as well, so the error of the context may only be [context.Canceled].
func IsPast(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return limited && !time.Now().Before(deadline)
}

// takeMore takes the memory that the slot lacks for a reply of size bytes. It does not wait,
// and reports whether there was enough.
func (p *Slot) takeMore(size int) bool {
	missing := int64(size) - p.memory
	if size <= SmallMessage || missing <= 0 {
		return true
	}
	missing = min(missing, p.conn.Caller.memory-p.memory)
	if !p.conn.Caller.messages.TryAcquire(missing) {
		return false
	}
	p.memory += missing
	return true
}

// HandOverMemory returns the memory of the slot in bytes, and leaves the slot without memory. The
// caller releases the memory with [Caller.ReleaseMemory].
func (p *Slot) HandOverMemory() int64 {
	bytes := p.memory
	p.memory = 0
	p.endTransfer()
	return bytes
}

// Caller returns the caller that the slot belongs to.
func (p *Slot) Caller() *Caller { return p.conn.Caller }

// ReleaseMemory releases the memory of the slot, except for reserved memory.
func (p *Slot) ReleaseMemory() {
	if taken := p.memory - p.reserved; taken > 0 {
		p.conn.Caller.messages.Release(taken)
		p.memory = p.reserved
	}
	p.endTransfer()
}

// endTransfer ends the transfer of the message of the slot.
func (p *Slot) endTransfer() {
	p.transfer.done()
	p.transfer = nil
}

// leave releases what the slot holds. It reports false if the end of the connection has already
// released it.
func (p *Slot) leave() bool {
	c := p.conn
	c.mu.Lock()
	first := !p.left
	if first {
		c.remove(p)
	}
	c.mu.Unlock()
	if first {
		p.release()
	}
	return first
}

// End releases what the slot holds. The slot must not be used afterwards.
func (p *Slot) End() {
	if p.leave() {
		*p = Slot{}
		slots.Put(p)
	}
}

// release releases what the slot holds. The slot must have been removed from its connection.
func (p *Slot) release() {
	p.reserved = 0
	p.ReleaseMemory()
	p.conn.Caller.calls.Add(-1)
}

// wireMessage returns the reply for gRPC to write. From now on the broker waits for the
// client to read it. gRPC does not free all replies when a connection ends, so the end of
// the connection ends their slots.
func (p *Slot) wireMessage() mem.BufferSlice {
	slice := mem.BufferSlice{mem.NewBuffer(p.reply, p)}
	p.conn.mu.Lock()
	p.replied = true
	closed := p.conn.closed
	if !closed {
		p.conn.link(p, time.Now())
	}
	p.conn.mu.Unlock()
	if closed {
		p.leave()
	}
	return slice
}

// Get implements mem.BufferPool. gRPC does not call it for a slot.
func (p *Slot) Get(size int) *[]byte { return buffers.Pool.Get(size) }

// Put implements mem.BufferPool. gRPC calls it when it has written the reply.
func (p *Slot) Put(buffer *[]byte) {
	buffers.Pool.Put(buffer)
	p.End()
}
