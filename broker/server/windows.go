// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/binary"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/tuning"
)

// gRPC receives a message of a stream as a whole before anybody can say that there
// is no room for it, and has the client send it as soon as its length is known: by a
// WINDOW_UPDATE (RFC 9113, section 6.9) of that length, where it is more than a
// client may send anyway. So that is what waits here for memory, and with it the
// client. Requests of unary calls have theirs before they are read.

// Of frames (RFC 9113, sections 4.1 and 6.9), in bytes where it is a size.
const (
	frameHeaderSize   = 9
	windowUpdateSize  = frameHeaderSize + 4
	frameWindowUpdate = 8
)

// arrivals is what the messages of a stream have of the memory for them, one at a
// time. The lock of the memory is for all of it.
type arrivals struct {
	conn   *callerConn
	stream uint32
	// held is in bytes, and turn in memory's list while the client has to send.
	held int64
	turn turn
	// stop ends the wait for memory, nil where there is none.
	stop   context.CancelFunc
	closed bool
	// large tells, to be seen without the lock, that there was an update since the
	// last message was served: most messages have none.
	large atomic.Bool
}

// openArrivals begins to look at the messages of a stream, by its context. They go
// unbounded where its number is not known, which is nil, as all methods take it.
func openArrivals(ctx context.Context) *arrivals {
	conn, stream := connOf(ctx), streamID(ctx)
	if conn == nil || stream == 0 {
		return nil
	}
	a := &arrivals{conn: conn, stream: stream}
	conn.memory.mu.Lock()
	defer conn.memory.mu.Unlock()
	if conn.arrivals == nil {
		conn.arrivals = map[uint32]*arrivals{}
	}
	conn.arrivals[stream] = a
	return a
}

// streamID is the number of a stream in its connection, 0 where it is not known. gRPC
// has it in a field that it exports to nobody; a test fails when that moves.
func streamID(ctx context.Context) uint32 {
	s := reflect.ValueOf(grpc.ServerTransportStreamFromContext(ctx))
	if s.Kind() != reflect.Pointer || s.Elem().Kind() != reflect.Struct {
		return 0
	}
	if id := s.Elem().FieldByName("id"); id.Kind() == reflect.Uint32 {
		return uint32(id.Uint())
	}
	return 0
}

// close gives back what there is.
func (a *arrivals) close() {
	if a == nil {
		return
	}
	a.conn.memory.mu.Lock()
	defer a.conn.memory.mu.Unlock()
	a.end()
}

// end does it. The caller has the lock.
func (a *arrivals) end() {
	a.closed = true
	delete(a.conn.arrivals, a.stream)
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
	a.release()
}

// breach ends the connection of a client that sends a message without the window for
// it: gRPC takes it, as it has said how much may come. The caller has the lock.
func (a *arrivals) breach() {
	a.end()
	go func() { _ = a.conn.Close() }() // which takes the lock, and may be done twice
}

// waits tells whether a message waits for memory, or for a client that is watched.
func (a *arrivals) waits() bool {
	if a == nil {
		return false
	}
	a.conn.memory.mu.Lock()
	defer a.conn.memory.mu.Unlock()
	return a.stop != nil || a.turn.next != nil
}

// handOver returns what the message holds, which the caller has to give back from then on.
func (a *arrivals) handOver() (held int64) {
	if a == nil {
		return 0
	}
	a.conn.memory.mu.Lock()
	defer a.conn.memory.mu.Unlock()
	held, a.held = a.held, 0
	return held
}

// arrived ends the client's turn with a message.
func (a *arrivals) arrived() {
	if a == nil || !a.large.Load() {
		return
	}
	a.conn.memory.mu.Lock()
	defer a.conn.memory.mu.Unlock()
	switch {
	case a.stop != nil:
		a.breach()
	case a.turn.next != nil:
		a.conn.memory.remove(&a.turn)
	}
}

// served gives back what a message has held: it is served, or waits for the client
// while others wait for that memory.
func (a *arrivals) served() {
	if a == nil || !a.large.Load() {
		return
	}
	a.conn.memory.mu.Lock()
	defer a.conn.memory.mu.Unlock()
	a.release()
	a.large.Store(false)
}

// release does it. The caller has the lock.
func (a *arrivals) release() {
	if a.turn.next != nil {
		a.conn.memory.remove(&a.turn)
	}
	if a.held > 0 {
		a.conn.memory.arriving.Release(a.held)
		a.held = 0
	}
}

// allow decides about an update of so many bytes: it may go out now, or does so once
// there is memory.
func (c *callerConn) allow(stream, size uint32) bool {
	m := c.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	a := c.arrivals[stream]
	if a == nil {
		return true // a unary call
	}
	if a.stop != nil {
		a.breach()
		return false
	}
	a.release() // of the message before, if nobody said that it was served
	a.large.Store(true)
	bytes := min(int64(size), m.arrivingTotal)
	if m.arriving.TryAcquire(bytes) {
		a.take(bytes)
		return true
	}
	var ctx context.Context
	ctx, a.stop = context.WithCancel(context.Background())
	go a.await(ctx, bytes, size)
	return false
}

// await waits for memory and then sends the update.
func (a *arrivals) await(ctx context.Context, bytes int64, size uint32) {
	if err := a.conn.memory.arriving.Acquire(ctx, bytes); err == nil && a.granted(bytes) {
		a.conn.update(a.stream, size)
	}
}

// granted takes the memory that was waited for; false where the stream has ended.
func (a *arrivals) granted(bytes int64) bool {
	m := a.conn.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.closed {
		m.arriving.Release(bytes)
		return false
	}
	a.stop()
	a.stop = nil
	a.take(bytes)
	return true
}

// take begins the client's turn. The caller has the lock.
func (a *arrivals) take(bytes int64) {
	a.held = bytes
	a.turn.conn, a.turn.since = a.conn, time.Now()
	a.conn.memory.insert(&a.turn)
}

// outgoing follows what gRPC sends.
type outgoing struct {
	mu   sync.Mutex
	left int // bytes to come of the frame that is being sent
	// begun is the beginning of a frame that has to be whole, and waiting are frames
	// that go out once a frame has ended.
	begun, waiting []byte
}

// Write implements net.Conn. Updates that have to wait for memory are left out.
func (c *callerConn) Write(b []byte) (int, error) {
	w := &c.outgoing
	w.mu.Lock()
	defer w.mu.Unlock()
	all := b
	if len(w.begun) > 0 {
		all = slices.Concat(w.begun, b)
	}
	ends := w.left // where the frame that is being sent does
	out, rest := c.sift(all)
	w.begun = append([]byte(nil), rest...) // since b is the caller's
	if len(w.waiting) > 0 && ends <= len(out) {
		out = slices.Concat(out[:ends], w.waiting, out[ends:])
		w.waiting = nil
	}
	if len(out) > 0 {
		if n, err := c.UnixConn.Write(out); err != nil {
			return min(n, len(b)), err
		}
	}
	return len(b), nil
}

// sift returns what of some bytes goes out, and the beginning of a frame that is left
// for the next time.
func (c *callerConn) sift(all []byte) (out, rest []byte) {
	w := &c.outgoing
	at := min(w.left, len(all))
	w.left -= at
	from, sifted := 0, false
	for len(all)-at >= frameHeaderSize {
		header := all[at : at+frameHeaderSize]
		if header[3] == frameWindowUpdate {
			if len(all)-at < windowUpdateSize {
				break
			}
			stream, size := binary.BigEndian.Uint32(header[5:]), binary.BigEndian.Uint32(all[at+frameHeaderSize:])
			if size > tuning.StreamWindow && !c.allow(stream, size) {
				out, sifted = append(out, all[from:at]...), true
				at += windowUpdateSize
				from = at
				continue
			}
		}
		size := frameHeaderSize + (int(header[0])<<16 | int(header[1])<<8 | int(header[2]))
		take := min(size, len(all)-at)
		at += take
		w.left = size - take
	}
	if !sifted {
		return all[:at], all[at:]
	}
	return append(out, all[from:at]...), all[at:]
}

// update sends an update that has waited, between the frames of gRPC.
func (c *callerConn) update(stream, size uint32) {
	frame := append(make([]byte, 0, windowUpdateSize), 0, 0, windowUpdateSize-frameHeaderSize, frameWindowUpdate, 0)
	frame = binary.BigEndian.AppendUint32(frame, stream)
	frame = binary.BigEndian.AppendUint32(frame, size)
	w := &c.outgoing
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left > 0 || len(w.begun) > 0 {
		w.waiting = append(w.waiting, frame...)
		return
	}
	_, _ = c.UnixConn.Write(frame) // where that fails, so does what gRPC writes next
}
