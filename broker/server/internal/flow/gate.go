// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate lets a few connections of a caller be read at one time, and messages of its
// streams be served: one fewer than there are processors, but one. So the calls that one
// connection sent begin before the next one is read, and a caller with many busy
// connections leaves a processor to others.
type gate struct {
	turns   *semaphore.Weighted
	waiting atomic.Int32
}

// gateTime is how long a connection waits at most: what keeps the others may be
// their clients.
const gateTime = 20 * time.Millisecond

func newGate(n int) gate { return gate{turns: semaphore.NewWeighted(int64(n))} }

// tryEnter enters if nobody waits.
func (g *gate) tryEnter() bool { return g.turns.TryAcquire(1) }

// enter waits for its turn. It reports false, and there is nothing to leave, where
// that does not come soon.
func (g *gate) enter() bool {
	ctx, cancel := context.WithTimeout(context.Background(), gateTime)
	defer cancel()
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	return g.turns.Acquire(ctx, 1) == nil
}

// A caller is not read for pauseTime once it began pauseCalls calls while more of its
// connections wait to be read. Processors that have nothing else to do then look at once
// for what other callers have sent, which they do every 10 ms otherwise. There are at most
// maxPauses pauses in a row while the caller has half of its calls.
const (
	pauseTime  = 50 * time.Microsecond
	pauseCalls = 32
	maxPauses  = 16
)

// A caller is throttled for throttleTime after throttleMisuses misuses within that time. A
// misuse is a call that was refused for the limits of the caller, or was given up before its
// request had come. While a caller is throttled, the broker reads throttledRead bytes of a
// connection at a time, and then nothing for throttledPause: with so many bytes a client
// can begin some thirty calls, and end them at once.
const (
	throttleTime    = 100 * time.Millisecond
	throttleMisuses = 16
	throttledRead   = 1 << 10
	throttledPause  = time.Millisecond
)

// Bytes that are neither calls nor messages use up the allowance of the caller, since
// frames of a few bytes cost more to read than to send. Without allowance, each
// misuseBytes of them count as one misuse. Each call and each message adds twice its size
// to the allowance, because it comes in frames, and because the client answers replies
// with frames, too. A message is added once it has its memory, which is before most of it
// comes. So the allowance has room for all messages that have memory.
const (
	misuseBytes    = 32 << 10
	allowanceBytes = 8 << 20
)

// maxAllowance returns the allowance at the beginning and at most, in bytes.
func (c *Caller) maxAllowance() int64 { return allowanceBytes + c.memory }

// received takes bytes that came from clients off the allowance.
func (c *Caller) received(bytes int) {
	if c.allowance.Add(-int64(bytes)) < 0 {
		c.allowance.Add(misuseBytes)
		c.noteMisuse()
	}
}

// credit adds to the allowance for a call or a message of so many bytes.
func (c *Caller) credit(bytes int) {
	if most := c.maxAllowance(); c.allowance.Add(2*int64(bytes)) > most {
		c.allowance.Store(most)
	}
}

// noteMisuse counts a misuse.
func (c *Caller) noteMisuse() {
	now := time.Now().UnixNano()
	if now-c.misusesSince.Load() > int64(throttleTime) {
		c.misusesSince.Store(now)
		c.misuses.Store(0)
	}
	if c.misuses.Add(1) >= throttleMisuses {
		c.throttledAt.Store(now)
	}
}

// Misuses returns how many misuses were counted of late.
func (c *Caller) Misuses() int { return int(c.misuses.Load()) }

// throttled reports whether the caller is throttled.
func (c *Caller) throttled() bool { return c.throttledSince(time.Now().Add(-throttleTime)) }

// throttledSince reports whether the caller was throttled, again or anew, after a time.
func (c *Caller) throttledSince(t time.Time) bool {
	at := c.throttledAt.Load()
	return at != 0 && at > t.UnixNano()
}

// Yield takes a turn of the caller and does nothing in it. A stream with many small
// messages yields now and then, so that such streams leave a processor to others, too.
func (c *Caller) Yield() {
	if c.gate.enter() {
		<-time.After(pauseTime)
		c.gate.turns.Release(1)
	}
}

// leave ends a turn, after a pause where the caller has to wait.
func (g *gate) leave(c *Caller) {
	switch {
	case c.throttled():
		<-time.After(throttledPause)
	case g.waiting.Load() > 0 && c.begun.Load() >= pauseCalls:
		c.begun.Store(0)
		for n := 0; n == 0 || n < maxPauses && c.busy(); n++ {
			<-time.After(pauseTime)
		}
	}
	g.turns.Release(1)
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
