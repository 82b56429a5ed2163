// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/tuning"
)

const (
	// defaultMemory is for requests and replies in flight, in bytes.
	defaultMemory = 128 << 20
	// readMemory is what is set aside in bytes before a request is read, whose size
	// nobody knows before: its frames, them in one piece, and the message, each as
	// large as an input may be.
	readMemory = 3 * maxInputSize
	// windowMemory is what clients may send in bytes, of each request, before it is
	// read.
	windowMemory = tuning.StreamWindow
	// smallReply is the size in bytes up to which a reply counts as read once it is
	// handed to gRPC.
	smallReply = 16 << 10
)

// WithMemory bounds the bytes that requests and replies in flight may take;
// requests beyond wait for their turn. Without it, that is 128 MiB. It should be no
// less than 4 MiB, which is what the largest call of Exchange takes.
func WithMemory(bytes int64) Option {
	return func(s *Server) { s.memory.total = max(1, bytes) }
}

// memory is what requests and replies in flight share.
//
// A request gets what the largest may take before it is read, so that it never
// has to wait half-read for others that are half-read, too. What it does not need
// is given back as soon as its size is known.
type memory struct {
	total int64
	*semaphore.Weighted
	// arriving is for messages of streams, until they are served: a quarter more of
	// the total. What they wait for does not depend on what waits for the total.
	arriving      *semaphore.Weighted
	arrivingTotal int64
	// patience is how long a client may take with its turn.
	patience time.Duration

	mu    sync.Mutex
	turns turn // the list's ends: next is the oldest
	// waiting counts requests that wait to be read, and crowded tells that they are
	// so many that what clients send in advance has to be bounded, too.
	waiting int64
	crowded atomic.Bool
}

// turn is memory that waits for a client, which has to send the rest of a request
// or to read a reply.
type turn struct {
	conn       *callerConn // nil where nobody has it
	bytes      int64
	since      time.Time
	reply      bool
	prev, next *turn // nil where it is in no list
}

// open makes it usable, once total and patience are set.
func (m *memory) open() {
	m.Weighted = semaphore.NewWeighted(m.total)
	m.arrivingTotal = max(m.total/4, maxMessageSize)
	m.arriving = semaphore.NewWeighted(m.arrivingTotal)
	m.turns.prev, m.turns.next = &m.turns, &m.turns
}

// begin waits for memory to read a request. What it gives belongs to t until end.
func (m *memory) begin(c *call, t *turn, now time.Time) error {
	bytes := min(m.total, readMemory)
	if !m.TryAcquire(bytes) {
		if err := m.queue(c.ctx, bytes); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return status.Errorf(codes.DeadlineExceeded, "%s: its turn did not come within the time that the call has, since others fill the memory for requests", c.op)
			}
			return status.FromContextError(err).Err()
		}
		now = time.Now()
	}
	t.conn, t.bytes, t.since = connOf(c.ctx), bytes, now
	m.mu.Lock()
	m.insert(t)
	m.mu.Unlock()
	return nil
}

// queue waits for memory.
func (m *memory) queue(ctx context.Context, bytes int64) error {
	conn := connOf(ctx)
	m.wait(conn, 1)
	err := m.Acquire(ctx, bytes)
	m.wait(conn, -1)
	return err
}

func (m *memory) wait(conn *callerConn, more int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting += more
	m.crowded.Store(m.waiting*windowMemory > m.total/4)
	if conn != nil {
		conn.waiting += more
		conn.changed.Broadcast()
	}
}

// pause holds back the bytes of a connection all of whose requests wait to be
// read. It goes on as soon as one of them is, or gives up. A connection on which
// the client has something else to do is never held back, since others may wait
// for that.
func (m *memory) pause(conn *callerConn) {
	m.mu.Lock()
	if conn.waiting == 0 && conn.turns == 0 {
		// What it sent last may be a request that has not got so far.
		m.mu.Unlock()
		runtime.Gosched()
		m.mu.Lock()
	}
	defer m.mu.Unlock()
	for conn.waiting > 0 && conn.turns == 0 && !conn.gone {
		conn.changed.Wait()
	}
}

// stream counts a stream of a connection for as long as it is open.
func (m *memory) stream(conn *callerConn, more int) {
	if conn == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	conn.turns += more
	conn.changed.Broadcast()
}

// received ends the client's turn with a request of size bytes. It returns what
// the request and its reply hold from then on.
func (m *memory) received(t *turn, size int) int64 {
	m.mu.Lock()
	m.remove(t)
	m.mu.Unlock()
	held := min(t.bytes, int64(2*size+callOverhead))
	m.Release(t.bytes - held)
	return held
}

// unread gives memory that a reply holds to its client's turn. It returns nil
// where the client is gone, and then keeps nothing.
func (m *memory) unread(conn *callerConn, held int64) *turn {
	t := &turn{conn: conn, bytes: held, since: time.Now(), reply: true}
	m.mu.Lock()
	defer m.mu.Unlock()
	if conn == nil || conn.gone {
		m.Release(held)
		return nil
	}
	m.insert(t)
	return t
}

// read ends the client's turn with a reply.
func (m *memory) read(t *turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.next != nil {
		m.remove(t)
		m.Release(t.bytes)
	}
}

// leave gives back what replies hold that a connection will not read any more:
// gRPC forgets some of them when a connection ends. Requests are given back by
// those who read them.
func (m *memory) leave(conn *callerConn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	conn.gone = true
	conn.changed.Broadcast()
	for _, a := range conn.arrivals {
		a.end()
	}
	for t := m.turns.next; t != &m.turns; {
		next := t.next
		if t.conn == conn && t.reply {
			m.remove(t)
			m.Release(t.bytes)
		}
		t = next
	}
}

// late returns the connections of clients that have taken too long, each once.
func (m *memory) late(now time.Time) []*callerConn {
	m.mu.Lock()
	defer m.mu.Unlock()
	var late []*callerConn
	seen := map[*callerConn]bool{nil: true}
	for t := m.turns.next; t != &m.turns && now.Sub(t.since) >= m.patience; t = t.next {
		if !seen[t.conn] {
			seen[t.conn] = true
			late = append(late, t.conn)
		}
	}
	return late
}

// watchMemory ends the connections of clients that have taken too long, until ctx ends:
// others wait for the memory.
func (s *Server) watchMemory(ctx context.Context) {
	tick := time.NewTicker(max(time.Millisecond, s.memory.patience/4))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, conn := range s.memory.late(now) {
				s.logger.Warn("a connection is closed: its client neither sends the rest of a request nor reads a reply",
					"container", conn.container, "time", s.memory.patience.String())
				_ = conn.Close() // it may be closed by now, which is as good
			}
		case <-ctx.Done():
			return
		}
	}
}

func (m *memory) insert(t *turn) {
	last := m.turns.prev
	t.prev, t.next = last, &m.turns
	last.next, m.turns.prev = t, t
	if t.conn != nil {
		t.conn.turns++
		t.conn.changed.Broadcast()
	}
}

func (m *memory) remove(t *turn) {
	t.prev.next, t.next.prev = t.next, t.prev
	t.prev, t.next = nil, nil
	if t.conn != nil {
		t.conn.turns--
	}
}
