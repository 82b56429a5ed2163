// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/tap"
)

// gate lets a few connections of a caller be read at one time, and messages of its
// streams be served: one fewer than there are processors, but one. So the calls that one
// connection sent begin before the next one is read, and a caller with many busy
// connections leaves a processor to others.
type gate struct {
	turns *semaphore.Weighted
	// size is how many turns there are.
	size    int
	waiting atomic.Int32

	mu sync.Mutex
	// taken are the turns that somebody has.
	taken []takenTurn
}

type takenTurn struct {
	// conn is the connection that is read, nil where the turn is a stream's.
	conn  *Conn
	since time.Time
}

// gateTime is how long a write to a connection may take before its turn does not count:
// gRPC does not go on with a connection while too much waits to be written to it.
// longestTurn is a bound for what nobody has thought of.
const (
	gateTime    = 20 * time.Millisecond
	longestTurn = time.Second
)

func newGate(n int) *gate { return &gate{turns: semaphore.NewWeighted(int64(n)), size: n} }

// tryEnter takes a turn to read a connection, which is nil for a stream, if nobody waits.
func (g *gate) tryEnter(conn *Conn) bool {
	if !g.turns.TryAcquire(1) {
		return false
	}
	g.take(conn)
	return true
}

// enter waits for a turn, in the order in which connections came. It reports false, and
// there is nothing to leave, where all turns are stuck.
func (g *gate) enter(conn *Conn) bool {
	if g.stuck() {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var watch *time.Timer
	watch = time.AfterFunc(time.Hour, func() {
		if g.stuck() {
			cancel()
			return
		}
		watch.Reset(gateTime)
	})
	watch.Reset(gateTime) // now that its function may read watch
	defer watch.Stop()
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	if g.turns.Acquire(ctx, 1) != nil {
		return false
	}
	g.take(conn)
	return true
}

func (g *gate) take(conn *Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken = append(g.taken, takenTurn{conn, time.Now()})
}

// release gives a turn to the next one.
func (g *gate) release(conn *Conn) {
	g.mu.Lock()
	i := slices.IndexFunc(g.taken, func(t takenTurn) bool { return t.conn == conn })
	g.taken = slices.Delete(g.taken, i, i+1)
	g.mu.Unlock()
	g.turns.Release(1)
}

// stuck reports whether all turns are taken and none of them may end soon, for its client
// does not read.
func (g *gate) stuck() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	for _, t := range g.taken {
		if now.Sub(t.since) < longestTurn && (t.conn == nil || !t.conn.stalled(now, gateTime)) {
			return false
		}
	}
	return len(g.taken) == g.size
}

// A caller is not read for pauseTime once it began pauseCalls calls while more of its
// connections wait to be read. Processors that have nothing else to do then look at once
// for what other callers have sent, which they do every 10 ms otherwise. While the caller
// is busy, it is not read until some of its calls end. Calls may also wait for what their
// clients have yet to send, so that it is read again where none ended in maxPauses pauses,
// some 20 ms. Where they end slowly, it is read again after longestPause pauses, some 100
// ms. Pauses are counted and not timed: on a busy machine the process may get no processor
// for as long.
const (
	pauseTime    = 50 * time.Microsecond
	pauseCalls   = 32
	maxPauses    = 400
	longestPause = 2000
)

// Yield takes a turn of the caller and does nothing in it. A stream with many small
// messages yields now and then, so that such streams leave a processor to others, too.
func (c *Caller) Yield() {
	if c.gate.enter(nil) {
		<-time.After(pauseTime)
		c.gate.release(nil)
	}
}

// endTurn ends a turn to read a connection, which is nil for a stream, after a pause where
// the caller has to wait.
func (c *Caller) endTurn(conn *Conn) {
	switch {
	case c.throttled():
		<-time.After(throttledPause)
	case c.begun.Load() >= pauseCalls && (c.gate.waiting.Load() > 0 || c.busy()):
		c.begun.Store(0)
		c.pause()
	}
	c.gate.release(conn)
}

// pause waits for pauseTime, and then until the caller is not busy any more, the number of
// its calls stays the same for maxPauses pauses, or for longestPause pauses.
func (c *Caller) pause() {
	<-time.After(pauseTime)
	calls, same := c.present(), 0
	for n := 1; n < longestPause && c.busy(); n++ {
		if same == maxPauses {
			c.arriving.Store(0) // these never take a slot
			return
		}
		<-time.After(pauseTime)
		same++
		if now := c.present(); now != calls {
			calls, same = now, 0
		}
	}
}

// present returns how many calls the caller has, streams apart, with those that take their
// slots soon.
func (c *Caller) present() int64 { return c.Calls() - c.streams.Load() + c.arriving.Load() }

// busy reports whether the caller has a quarter of the calls that it may have, streams
// apart. So many keep all processors at work for a millisecond or two, for which others wait.
func (c *Caller) busy() bool { return c.present() > max(pauseCalls, c.Share.calls/4) }

// NoteCall notes a call as soon as its headers are read, so that it counts before the next
// connection is read. It implements tap.ServerInHandle, and refuses nothing.
func NoteCall(ctx context.Context, _ *tap.Info) (context.Context, error) {
	c := ConnOf(ctx).Caller
	c.begun.Add(1)
	c.arriving.Add(1)
	return ctx, nil
}

// arrived notes that a call of NoteCall came to take its slot.
func (c *Caller) arrived() {
	if c.arriving.Add(-1) < 0 {
		c.arriving.Add(1) // it was given up, see pause
	}
}

// Turn is a stream's permission of the gate of its caller to serve messages.
type Turn struct {
	caller *Caller
	// taken says that the turn has begun, and held that the gate counts it.
	taken, held bool
}

// NewTurn returns a turn for a stream of the caller. It has not begun.
func (c *Caller) NewTurn() Turn { return Turn{caller: c} }

// Begin begins a turn, unless there is one.
func (t *Turn) Begin() {
	if t.taken {
		return
	}
	gate := t.caller.gate
	t.taken, t.held = true, gate.tryEnter(nil) || gate.enter(nil)
}

// End ends the turn. A stream ends its turn before it waits for its client.
func (t *Turn) End() {
	if t.held {
		t.caller.endTurn(nil)
	}
	t.taken, t.held = false, false
}
