// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
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
	turns   *semaphore.Weighted
	waiting atomic.Int32
	// moved counts turns that ended, and pauses.
	moved atomic.Uint64
}

// A connection waits for as long as turns end. Where none did in gateLooks looks, it goes
// on without a turn: what keeps the others may be their clients. Looks are counted, since
// on a busy machine the process may get no processor for as long.
const (
	gateTime  = 20 * time.Millisecond
	gateLooks = 4
)

func newGate(n int) gate { return gate{turns: semaphore.NewWeighted(int64(n))} }

// tryEnter enters if nobody waits.
func (g *gate) tryEnter() bool { return g.turns.TryAcquire(1) }

// enter waits for its turn, in the order in which connections came, for as long as turns
// end. It reports false, and there is nothing to leave, where none did for gateTime.
func (g *gate) enter() bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	moved, same := g.moved.Load(), 0
	var look *time.Timer
	look = time.AfterFunc(time.Hour, func() {
		same++
		if now := g.moved.Load(); now != moved {
			moved, same = now, 0
		}
		if same == gateLooks {
			cancel()
			return
		}
		look.Reset(gateTime / gateLooks)
	})
	look.Reset(gateTime / gateLooks) // now that its function may read look
	defer look.Stop()
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	return g.turns.Acquire(ctx, 1) == nil
}

// release gives a turn to the next connection.
func (g *gate) release() {
	g.moved.Add(1)
	g.turns.Release(1)
}

// A caller is not read for pauseTime once it began pauseCalls calls while more of its
// connections wait to be read. Processors that have nothing else to do then look at once
// for what other callers have sent, which they do every 10 ms otherwise. While the caller
// has half of its calls, it is not read until some of them end. Calls may also wait for
// what their clients have yet to send, so that it is read again where none ended in
// maxPauses pauses, some 20 ms. They are counted and not timed: on a busy machine the
// process may get no processor for as long.
const (
	pauseTime  = 50 * time.Microsecond
	pauseCalls = 32
	maxPauses  = 400
)

// Yield takes a turn of the caller and does nothing in it. A stream with many small
// messages yields now and then, so that such streams leave a processor to others, too.
func (c *Caller) Yield() {
	if c.gate.enter() {
		<-time.After(pauseTime)
		c.gate.release()
	}
}

// leave ends a turn, after a pause where the caller has to wait.
func (g *gate) leave(c *Caller) {
	switch {
	case c.throttled():
		<-time.After(throttledPause)
	case c.begun.Load() >= pauseCalls && (g.waiting.Load() > 0 || c.busy()):
		c.begun.Store(0)
		c.pause()
	}
	g.release()
}

// pause waits for pauseTime, and then until the caller has less than half of its calls, or
// their number stays the same for maxPauses pauses.
func (c *Caller) pause() {
	<-time.After(pauseTime)
	calls := c.present()
	for same := 0; c.busy(); same++ {
		if same == maxPauses {
			c.arriving.Store(0) // these never take a slot
			return
		}
		c.gate.moved.Add(1)
		<-time.After(pauseTime)
		if now := c.present(); now != calls {
			calls, same = now, 0
		}
	}
}

// present returns how many calls the caller has, with those that take their slots soon.
func (c *Caller) present() int64 { return c.Calls() + c.arriving.Load() }

// busy reports whether the caller has half of the calls that it may have.
func (c *Caller) busy() bool { return c.present() > c.Share.calls/2 }

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
	gate := &t.caller.gate
	t.taken, t.held = true, gate.tryEnter() || gate.enter()
}

// End ends the turn. A stream ends its turn before it waits for its client.
func (t *Turn) End() {
	if t.held {
		t.caller.gate.leave(t.caller)
	}
	t.taken, t.held = false, false
}
