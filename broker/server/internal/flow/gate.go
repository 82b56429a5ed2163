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

// gate limits how many connections of a caller are read, and how many of its streams are served,
// at one time: one fewer than there are processors, but at least one. So the calls of one
// connection begin before the next connection is read, and a caller with many busy connections
// leaves a processor to others.
type gate struct {
	turns   *semaphore.Weighted
	waiting atomic.Int32

	mu sync.Mutex
	// taken are the turns in use.
	taken []takenTurn
}

// turnHolder is the holder of a turn: a connection that is read, or a stream.
type turnHolder interface {
	// stalled reports whether a write to the connection has taken longer than patience.
	stalled(now time.Time, patience time.Duration) bool
}

type takenTurn struct {
	holder turnHolder
	since  time.Time
}

// gateTime is how long a write to a connection may take before the next connection gets its turn,
// because gRPC does not read a connection while too much waits to be written to it. longestTurn
// bounds a turn in all other cases.
const (
	gateTime    = 20 * time.Millisecond
	longestTurn = time.Second
)

func newGate(n int) *gate { return &gate{turns: semaphore.NewWeighted(int64(n))} }

// tryEnter takes a turn for the holder if a turn is free and nobody waits. It reports whether it
// took one.
func (g *gate) tryEnter(holder turnHolder) bool {
	if !g.turns.TryAcquire(1) {
		return false
	}
	g.take(holder)
	return true
}

// enter waits for a turn. Holders get turns in the order of their calls of enter.
func (g *gate) enter(holder turnHolder) {
	g.endStuck()
	var watch *time.Timer
	watch = time.AfterFunc(time.Hour, func() {
		g.endStuck()
		watch.Reset(gateTime)
	})
	watch.Reset(gateTime) // now that its function may read watch
	defer watch.Stop()
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	_ = g.turns.Acquire(context.Background(), 1) // the only possible error is the end of the context
	g.take(holder)
}

func (g *gate) take(holder turnHolder) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken = append(g.taken, takenTurn{holder, time.Now()})
}

// release passes the turn of the holder to the next holder, unless endStuck has done so.
func (g *gate) release(holder turnHolder) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(func(t takenTurn) bool { return t.holder == holder })
}

// endStuck ends the turns that may not end soon by themselves. For each of them, the next waiting
// holder gets a turn.
func (g *gate) endStuck() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.end(func(t takenTurn) bool {
		return now.Sub(t.since) >= longestTurn || t.holder.stalled(now, gateTime)
	})
}

// end ends the turns that match. g.mu is locked.
func (g *gate) end(match func(takenTurn) bool) {
	before := len(g.taken)
	g.taken = slices.DeleteFunc(g.taken, match)
	if ended := before - len(g.taken); ended > 0 {
		g.turns.Release(int64(ended))
	}
}

// Limits of pauses. A caller that has begun pauseCalls calls while more of its connections wait
// to be read is not read for pauseTime. Idle processors then look for data of other callers at
// once, and not only every 10 ms. A busy caller is not read until some of its calls end. Calls
// may also wait for data of their clients, so a caller is read again if none of its calls ends in
// maxPauses pauses, some 20 ms. If its calls end slowly, it is read again after longestPause
// pauses, some 100 ms. Pauses are counted and not timed, because on a busy machine the process
// may get no processor for as long.
const (
	pauseTime    = 50 * time.Microsecond
	pauseCalls   = 32
	maxPauses    = 400
	longestPause = 2000
)

// Yield takes a turn of the caller and ends it at once. A stream with many small messages yields
// from time to time, so that it leaves a processor to other callers.
func (c *Caller) Yield() {
	turn := c.NewTurn()
	c.gate.enter(&turn)
	<-time.After(pauseTime)
	c.gate.release(&turn)
}

// endTurn ends the turn of the holder. If the caller has to pause, endTurn first waits for the
// pause.
func (c *Caller) endTurn(holder turnHolder) {
	switch {
	case c.throttled():
		<-time.After(throttledPause)
	case c.begun.Load() >= pauseCalls && (c.gate.waiting.Load() > 0 || c.busy()):
		c.begun.Store(0)
		c.pause()
	}
	c.gate.release(holder)
}

// pause waits for pauseTime. Then it waits until the caller is not busy any more, until the
// number of its calls has not changed for maxPauses pauses, or for longestPause pauses.
func (c *Caller) pause() {
	<-time.After(pauseTime)
	calls, same := c.present(), 0
	for n := 1; n < longestPause && c.busy(); n++ {
		if same == maxPauses {
			c.arriving.Store(0) // these calls never take a slot
			return
		}
		<-time.After(pauseTime)
		same++
		if now := c.present(); now != calls {
			calls, same = now, 0
		}
	}
}

// present returns the number of calls of the caller without streams. It includes calls that are
// about to take their slots.
func (c *Caller) present() int64 { return c.Calls() - c.streams.Load() + c.arriving.Load() }

// busy reports whether the caller has a quarter of the calls that it may have, without streams.
// Such a number of calls occupies all processors for a millisecond or two, and other callers wait
// for as long.
func (c *Caller) busy() bool { return c.present() > max(pauseCalls, c.Share.calls/4) }

// NoteCall counts a call as soon as its headers are read, before the next connection is read. It
// implements tap.ServerInHandle, and refuses nothing.
func NoteCall(ctx context.Context, _ *tap.Info) (context.Context, error) {
	c := ConnOf(ctx).Caller
	c.begun.Add(1)
	c.arriving.Add(1)
	return ctx, nil
}

// arrived records that a call of NoteCall is about to take its slot.
func (c *Caller) arrived() {
	if c.arriving.Add(-1) < 0 {
		c.arriving.Add(1) // pause has set the number to 0 meanwhile
	}
}

// Turn is a stream's turn at the gate of its caller, in which it may serve messages. It must not
// be copied once it has begun.
type Turn struct {
	caller *Caller
	// taken reports whether the turn has begun.
	taken bool
}

// NewTurn returns a turn for a stream of the caller. It has not begun.
func (c *Caller) NewTurn() Turn { return Turn{caller: c} }

// Begin begins the turn, unless it has begun.
func (t *Turn) Begin() {
	if t.taken {
		return
	}
	t.taken = true
	if !t.caller.gate.tryEnter(t) {
		t.caller.gate.enter(t)
	}
}

// End ends the turn. A stream ends its turn before it waits for its client.
func (t *Turn) End() {
	if t.taken {
		t.caller.endTurn(t)
	}
	t.taken = false
}

// stalled reports false: a stream ends its turn before it writes.
func (t *Turn) stalled(time.Time, time.Duration) bool { return false }
