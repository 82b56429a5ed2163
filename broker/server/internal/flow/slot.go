// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// Slot is the part of its caller's share that a call holds: one of the calls, and memory
// for its messages. The call holds it until gRPC has written the reply, so that a client
// which does not read has no more calls than one that does.
type Slot struct {
	conn *Conn
	// memory is in bytes.
	memory int64
	// reply is the buffer of the reply, once there is one.
	reply *[]byte

	// The rest is guarded by the lock of the connection. A slot is in its list while
	// the broker waits for the client: to send a request, or to read a reply.
	since      time.Time
	prev, next *Slot
	replied    bool
	left       bool
}

var slots = sync.Pool{New: func() any { return new(Slot) }}

// Enter takes a slot for a call of a connection. what names the call in errors.
func (c *Conn) Enter(what fmt.Stringer) (*Slot, error) {
	c.Caller.arrived()
	c.Caller.credit(MaxHeaderSize)
	if !take(&c.Caller.calls, c.Caller.Share.calls) {
		c.Caller.noteMisuse()
		return nil, c.Caller.tooMany(what, c.Caller.Share.calls, "calls")
	}
	c.mu.Lock()
	gone := c.gone
	if !gone {
		c.calls++
	}
	c.mu.Unlock()
	if gone {
		c.Caller.calls.Add(-1)
		return nil, status.Errorf(codes.Unavailable, "%s: the connection is closed", what)
	}
	p := slots.Get().(*Slot)
	p.conn = c
	return p, nil
}

// awaitClient begins the time that the client has to send.
func (p *Slot) awaitClient(now time.Time) {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	p.conn.link(p, now)
}

// clientDone ends the time that the client has to send.
func (p *Slot) clientDone() {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	p.conn.unlink(p)
}

// TakeMemory waits, at most for patience, for the memory of a message of so many bytes and
// of what is made of it. It takes all of it at once, so that no call which holds memory
// waits for more.
func (p *Slot) TakeMemory(ctx context.Context, what fmt.Stringer, size int, patience time.Duration) error {
	if size <= SmallMessage {
		return nil
	}
	share := p.conn.Caller
	bytes := min(2*int64(size), share.memory)
	if !share.messages.TryAcquire(bytes) {
		waiting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := share.messages.Acquire(waiting, bytes); err != nil {
			switch {
			case ctx.Err() == nil:
				return status.Errorf(codes.ResourceExhausted, "%s: the other messages of %s have filled its %d bytes of memory for %s, try again later", what, share.label(), share.memory, patience)
			case IsPast(ctx):
				return status.Errorf(codes.DeadlineExceeded, "%s: the other messages of %s filled its %d bytes of memory for as long as the call had", what, share.label(), share.memory)
			}
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	p.memory += bytes
	return nil
}

// IsPast reports whether the deadline of a call is over. A client gives the call up then,
// too, so that the context may only say that the call was canceled.
func IsPast(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return limited && !time.Now().Before(deadline)
}

// takeMore takes memory for a reply that is larger than what the slot has. It reports
// whether there was enough.
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

// HandOverMemory returns the memory of the slot in bytes. From now on it belongs to whoever
// called, who gives it back by [Caller.ReleaseMemory].
func (p *Slot) HandOverMemory() int64 {
	bytes := p.memory
	p.memory = 0
	return bytes
}

// Caller returns the caller that the slot belongs to.
func (p *Slot) Caller() *Caller { return p.conn.Caller }

// ReleaseMemory gives the memory of the slot back.
func (p *Slot) ReleaseMemory() {
	if p.memory > 0 {
		p.conn.Caller.messages.Release(p.memory)
		p.memory = 0
	}
}

// leave gives back what the slot holds. It reports false where that was done already,
// because the connection ended.
func (p *Slot) leave() bool {
	c := p.conn
	c.mu.Lock()
	first := !p.left
	if first {
		c.remove(p)
	}
	c.mu.Unlock()
	if first {
		p.give()
	}
	return first
}

// End gives back what the slot holds. Nobody may use the slot after it.
func (p *Slot) End() {
	if p.leave() {
		*p = Slot{}
		slots.Put(p)
	}
}

// give gives back what the slot holds, once it is removed from its connection.
func (p *Slot) give() {
	p.ReleaseMemory()
	p.conn.Caller.calls.Add(-1)
}

// wireMessage hands the reply to gRPC, and begins the time that the client has to read.
// gRPC does not free all replies where a connection ends, so their slots end with the
// connection.
func (p *Slot) wireMessage() mem.BufferSlice {
	slice := mem.BufferSlice{mem.NewBuffer(p.reply, p)}
	p.conn.mu.Lock()
	p.replied = true
	gone := p.conn.gone
	if !gone {
		p.conn.link(p, time.Now())
	}
	p.conn.mu.Unlock()
	if gone {
		p.leave()
	}
	return slice
}

// Get implements mem.BufferPool; nobody takes from it.
func (p *Slot) Get(size int) *[]byte { return Buffers.Get(size) }

// Put implements mem.BufferPool: gRPC has written the reply.
func (p *Slot) Put(buffer *[]byte) {
	Buffers.Put(buffer)
	p.End()
}
