// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// place is what a call has of its caller's share: it is one of the calls, and has
// memory for its messages. It is kept until gRPC has written the reply, so that a
// client which does not read has no more calls than one that does.
type place struct {
	conn *callerConn
	// memory is in bytes.
	memory int64
	// reply is the buffer of the reply, once there is one.
	reply *[]byte

	// The rest is guarded by the lock of the connection. A place is in its list while
	// the broker waits for the client: to send a request, or to read a reply.
	since      time.Time
	prev, next *place
	replied    bool
	left       bool
}

var places = sync.Pool{New: func() any { return new(place) }}

// enter takes a place for a call of a connection.
func (c *callerConn) enter(what fmt.Stringer) (*place, error) {
	c.caller.begun.Add(1)
	c.caller.useful(maxHeaderSize)
	for n := 0; !take(&c.caller.calls, c.caller.bounds.calls); n++ {
		if n == mostPauses {
			c.caller.strain()
			return nil, c.caller.tooMany(what, c.caller.bounds.calls, "calls")
		}
		runtime.Gosched() // calls that can end do so meanwhile
	}
	c.mu.Lock()
	gone := c.gone
	if !gone {
		c.calls++
	}
	c.mu.Unlock()
	if gone {
		c.caller.calls.Add(-1)
		return nil, status.Errorf(codes.Unavailable, "%s: the connection is closed", what)
	}
	p := places.Get().(*place)
	p.conn = c
	return p, nil
}

// await begins the client's time to send.
func (p *place) await(now time.Time) {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	p.conn.link(p, now)
}

// arrived ends it.
func (p *place) arrived() {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	p.conn.unlink(p)
}

// grant waits for memory for a message of so many bytes and what is made of it. That
// comes from the caller's share at once: one that has some never waits for more.
func (p *place) grant(ctx context.Context, what fmt.Stringer, size int, patience time.Duration) error {
	if size <= smallMessage {
		return nil
	}
	share := p.conn.caller
	bytes := min(2*int64(size), share.memory)
	if !share.messages.TryAcquire(bytes) {
		waiting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := share.messages.Acquire(waiting, bytes); err != nil {
			switch {
			case ctx.Err() == nil:
				return status.Errorf(codes.ResourceExhausted, "%s: the other messages of %s have filled its %d bytes of memory for %s, try again later", what, share.who(), share.memory, patience)
			case isPast(ctx):
				return status.Errorf(codes.DeadlineExceeded, "%s: the other messages of %s filled its %d bytes of memory for as long as the call had", what, share.who(), share.memory)
			}
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	p.memory += bytes
	return nil
}

// more takes memory for a reply that is larger than what was granted, if there is some.
func (p *place) more(size int) bool {
	missing := int64(size) - p.memory
	if size <= smallMessage || missing <= 0 {
		return true
	}
	missing = min(missing, p.conn.caller.memory-p.memory)
	if !p.conn.caller.messages.TryAcquire(missing) {
		return false
	}
	p.memory += missing
	return true
}

// release gives the memory back.
func (p *place) release() {
	if p.memory > 0 {
		p.conn.caller.messages.Release(p.memory)
		p.memory = 0
	}
}

// leave gives back what the place holds, once: it reports false where that was done
// before, as the connection ended.
func (p *place) leave() bool {
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

// end is leave where nobody refers to the place any more.
func (p *place) end() {
	if p.leave() {
		*p = place{}
		places.Put(p)
	}
}

// give gives back what the place holds, once it is removed from its connection.
func (p *place) give() {
	p.release()
	p.conn.caller.calls.Add(-1)
}

// message hands the reply to gRPC. From then on the client may take its time. gRPC
// does not let go of all replies where a connection ends, so their places end with it.
func (p *place) message() mem.BufferSlice {
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
func (p *place) Get(size int) *[]byte { return buffers.Get(size) }

// Put implements mem.BufferPool: gRPC has written the reply.
func (p *place) Put(buffer *[]byte) {
	buffers.Put(buffer)
	p.end()
}
