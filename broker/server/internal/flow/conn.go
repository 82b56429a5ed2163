// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

// sendBuffer is what the system keeps of what was written to a connection and not
// read by its client, in bytes: Linux doubles it, for what it needs beside them, and
// counts it as the broker's memory.
const sendBuffer = 16 << 10

// stallTime is how long the system may take with a write before the client counts
// as one that does not read.
const stallTime = 10 * time.Millisecond

// Conn is a connection that knows its caller, and which slots its client keeps busy.
type Conn struct {
	*net.UnixConn
	Caller *Caller
	unixsocket.Identity
	ready readiness
	// reading says that the connection has one of the caller's turns to be read.
	reading atomic.Bool
	// Jobs has the calls of the connection that wait for a worker.
	Jobs work.Queue

	// write is held while something is written, writing is when that began, in
	// nanoseconds since 1970, and announced says that the first frame is out.
	write     sync.Mutex
	writing   atomic.Int64
	announced bool
	// wide says that the connection has the window of gRPC, see wideConnections.
	wide bool

	mu   sync.Mutex
	gone bool // it is closed
	// calls is how many it has, and quiet since when it has none.
	calls int
	quiet time.Time
	// first and last are the ends of the list of slots that wait for the client, the
	// oldest first.
	first, last *Slot
}

func newConn(conn *net.UnixConn, from *Caller, who unixsocket.Identity) *Conn {
	return &Conn{UnixConn: conn, Caller: from, Identity: who, quiet: time.Now(), Jobs: from.Turns.NewQueue()}
}

// MayUse reports whether the caller of the connection may use a profile at all. Without a
// connection, which cannot happen, it may use none.
func (c *Conn) MayUse(name string) bool { return c != nil && c.Identity.MayUse(name) }

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	c.writing.Store(time.Now().UnixNano())
	c.write.Lock()
	defer func() {
		c.write.Unlock()
		c.writing.Store(0)
	}()
	if !c.announced && !c.wide {
		b = withCallWindow(b)
	}
	c.announced = true
	return c.UnixConn.Write(b)
}

// awaitReader waits while the client does not read what is written, so that it begins no
// more calls whose replies would have to wait.
func (c *Conn) awaitReader() {
	if c.stalled(time.Now(), stallTime) {
		c.write.Lock()
		c.write.Unlock() //nolint:staticcheck // to wait is all
	}
}

// stalled reports whether a write has taken longer than patience.
func (c *Conn) stalled(now time.Time, patience time.Duration) bool {
	since := c.writing.Load()
	return since != 0 && now.UnixNano()-since > int64(patience)
}

// takeTurn takes one of the caller's turns to read, waiting or not.
func (c *Conn) takeTurn(wait bool) bool {
	gate := c.Caller.gate
	if wait {
		if gate.enter(c) {
			c.reading.Store(true)
		}
		return true
	}
	if gate.tryEnter(c) {
		c.reading.Store(true)
		return true
	}
	return false
}

// endTurn gives the turn to the next connection.
func (c *Conn) endTurn() {
	if c.reading.CompareAndSwap(true, false) {
		c.Caller.endTurn(c)
	}
}

// Close implements net.Conn. The slots of replies that gRPC has not written end.
func (c *Conn) Close() error {
	c.endTurn()
	c.Caller.forget(c)
	var ended []*Slot
	c.mu.Lock()
	c.gone = true
	for p := c.first; p != nil; {
		next := p.next
		if p.replied {
			c.remove(p)
			ended = append(ended, p)
		}
		p = next
	}
	c.mu.Unlock()
	for _, p := range ended {
		p.give()
	}
	err := c.UnixConn.Close() // which waits for a read under way
	c.endTurn()               // of that read
	return err
}

// retire closes a connection for new calls if it has none; false where it has.
func (c *Conn) retire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls > 0 {
		return false
	}
	c.gone = true
	return true
}

// idleSince reports whether the connection has no call, and since when.
func (c *Conn) idleSince() (idle bool, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls == 0, c.quiet
}

// overdue reports whether the client has had longer than patience to send the rest of a
// request, to read a reply, or to read anything at all.
func (c *Conn) overdue(now time.Time, patience time.Duration) bool {
	if c.stalled(now, patience) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first != nil && now.Sub(c.first.since) > patience
}

// link appends a slot to the list. The caller has the lock, as in all that follow.
func (c *Conn) link(p *Slot, now time.Time) {
	p.since, p.prev, p.next = now, c.last, nil
	if c.last == nil {
		c.first = p
	} else {
		c.last.next = p
	}
	c.last = p
}

func (c *Conn) linked(p *Slot) bool { return p.prev != nil || c.first == p }

func (c *Conn) unlink(p *Slot) {
	if !c.linked(p) {
		return
	}
	if p.prev == nil {
		c.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		c.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
}

// remove is the end of a call.
func (c *Conn) remove(p *Slot) {
	c.unlink(p)
	p.left = true
	if c.calls--; c.calls == 0 {
		c.quiet = time.Now()
	}
}
