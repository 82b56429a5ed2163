// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/clock"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rawio"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
)

// sendBuffer is the number of bytes that the system buffers after the broker has written them and
// before the client has read them. Linux doubles the number for its own needs, and counts the
// buffer as memory of the broker.
const sendBuffer = 16 << 10

// stallTime is how long a write may take before the broker assumes that the client does
// not read.
const stallTime = 10 * time.Millisecond

// Conn is a connection of a caller, with the slots that wait for its client.
type Conn struct {
	*net.UnixConn
	Caller *Caller
	unixsocket.Identity
	ready readiness
	// reading reports whether the connection has one of the caller's turns to be read.
	reading atomic.Bool
	// Jobs has the calls of the connection that wait for a worker.
	Jobs work.Queue

	// write is locked while the broker writes with writer. writing is the time at which the write
	// began, a number of package clock, or 0. announced reports whether the first frame was
	// written.
	write     sync.Mutex
	writer    rawio.Writer
	writing   atomic.Int64
	announced bool
	// wide reports whether the connection has gRPC's window, see wideConnections.
	wide bool
	// unread reports whether the client has left output of a stream unread for too long.
	unread atomic.Bool

	mu sync.Mutex
	// closed reports whether the connection takes no new calls.
	closed bool
	// calls is the number of calls of the connection. quiet is the time at which the last call
	// ended, or the connection began.
	calls int
	quiet time.Time
	// first and last are the ends of the list of slots that wait for the client. The
	// oldest slot is the first.
	first, last *Slot
}

func newConn(conn *net.UnixConn, from *Caller, who unixsocket.Identity) *Conn {
	return &Conn{UnixConn: conn, Caller: from, Identity: who, quiet: time.Now(), Jobs: from.Turns.NewQueue()}
}

// MayUse reports whether the options of the broker let the caller of the connection use a
// profile. It reports false for a nil connection, so a defect allows nothing.
func (c *Conn) MayUse(name string) bool { return c != nil && c.Identity.MayUse(name) }

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	c.writing.Store(clock.Nanos(time.Now()))
	c.write.Lock()
	defer func() {
		c.write.Unlock()
		c.writing.Store(0)
	}()
	if !c.announced && !c.wide {
		b = withCallWindow(b)
	}
	c.announced = true
	return c.writer.Write(b, c.Caller.processors.Quiet())
}

// awaitReader waits while the client does not read what the broker writes. So a client that
// does not read cannot begin more calls.
func (c *Conn) awaitReader() {
	if c.stalled(time.Now(), stallTime) {
		c.write.Lock()
		c.write.Unlock() //nolint:staticcheck // the lock is only awaited
	}
}

// stalled reports whether a write has taken longer than patience.
func (c *Conn) stalled(now time.Time, patience time.Duration) bool {
	since := c.writing.Load()
	return since != 0 && clock.Nanos(now)-since > int64(patience)
}

// takeTurn takes one of the caller's turns to read, and reports whether it has one. With wait it
// waits for a turn. Otherwise it takes only a free turn.
func (c *Conn) takeTurn(wait bool) bool {
	gate := c.Caller.gate
	if !gate.tryEnter(c) {
		if !wait {
			return false
		}
		gate.enter(c)
	}
	c.reading.Store(true)
	return true
}

// endTurn gives the turn to the next connection.
func (c *Conn) endTurn() {
	if c.reading.CompareAndSwap(true, false) {
		c.Caller.endTurn(c)
	}
}

// Close implements net.Conn. It ends the slots of replies that gRPC has not written.
func (c *Conn) Close() error {
	c.endTurn()
	c.Caller.forget(c)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.endReplies(func(*Slot) bool { return true })
	err := c.UnixConn.Close() // waits for a read that has begun
	c.endTurn()               // the earlier read may have taken a turn
	return err
}

// retire closes a connection for new calls, and reports true. If the connection has calls, it
// does nothing and reports false.
func (c *Conn) retire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls > 0 {
		return false
	}
	c.closed = true
	return true
}

// idleSince reports whether the connection has no call, and since when.
func (c *Conn) idleSince() (idle bool, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls == 0, c.quiet
}

// LeftUnread records that the client has left output of a stream unread for too long. The connection
// is then closed, because gRPC would keep the output after the end of the stream.
func (c *Conn) LeftUnread() { c.unread.Store(true) }

// overdue reports whether the client has taken longer than patience to send the rest of a
// request, to read a reply, or to read anything at all.
func (c *Conn) overdue(now time.Time, patience time.Duration) bool {
	if c.unread.Load() || c.stalled(now, patience) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first != nil && now.Sub(c.first.since) > patience
}

// link appends a slot to the list of slots that wait for the client. The callers of link, linked,
// unlink and remove have locked c.mu.
func (c *Conn) link(p *Slot, now time.Time) {
	p.since, p.prev, p.next = now, c.last, nil
	if c.last == nil {
		c.first = p
	} else {
		c.last.next = p
	}
	c.last = p
}

// linked reports whether a slot is in the list.
func (c *Conn) linked(p *Slot) bool { return p.prev != nil || c.first == p }

// unlink removes a slot from the list if it is there.
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

// remove ends the call of a slot.
func (c *Conn) remove(p *Slot) {
	c.unlink(p)
	p.left = true
	if c.calls--; c.calls == 0 {
		c.quiet = time.Now()
	}
}
