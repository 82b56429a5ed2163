// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate lets a few connections of a caller be read at one time, and messages of its
// streams be served: one fewer than there are processors, but one. So the calls that one
// connection brought begin before the next one is read, and a caller with many busy
// connections leaves a processor to others.
type gate struct {
	turns   *semaphore.Weighted
	waiting atomic.Int32
}

// gateTime is how long a connection waits at most: what keeps the others may be
// their clients.
const gateTime = 20 * time.Millisecond

func newGate(n int) gate { return gate{turns: semaphore.NewWeighted(int64(n))} }

// try enters if nobody waits.
func (g *gate) try() bool { return g.turns.TryAcquire(1) }

// enter waits for its turn. It reports false, and there is nothing to leave, where
// that does not come soon.
func (g *gate) enter() bool {
	ctx, cancel := context.WithTimeout(context.Background(), gateTime)
	defer cancel()
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	return g.turns.Acquire(ctx, 1) == nil
}

// pauseTime is how long a caller is not read where it began pauseCalls calls and more
// of its connections wait to be read. Processors that have nothing else to do then look
// at once for what other callers have sent, which they do every 10 ms otherwise.
// mostPauses is how many pauses there are while the caller has half of its calls.
const (
	pauseTime  = 50 * time.Microsecond
	pauseCalls = 32
	mostPauses = 16
)

// A caller is strained for strainTime after strainCalls calls of it within that time were
// refused for its limits, or given up before their requests had come. Then strainedRead
// bytes of a connection are read at a time, and nothing for strainedPause after that: a
// client can begin some thirty calls by so many bytes, and end them at once.
const (
	strainTime    = 100 * time.Millisecond
	strainCalls   = 16
	strainedRead  = 1 << 10
	strainedPause = time.Millisecond
)

// What a client sends beside calls and messages is a strain for each uselessBytes of it,
// once no more is spared: frames of a few bytes cost more to read than to send. Calls and
// messages make up for what came by twice their size, because they come in frames, and so
// does what a client says of replies. A message does so when it has its memory, which is
// before most of it comes; so what is spared has room for all that have.
const (
	uselessBytes = 32 << 10
	sparedBytes  = 8 << 20
)

// mostSpared is what is spared at the beginning, and at most, in bytes.
func (c *caller) mostSpared() int64 { return sparedBytes + c.memory }

// came notes that bytes came from clients.
func (c *caller) came(bytes int) {
	if c.spared.Add(-int64(bytes)) < 0 {
		c.spared.Add(uselessBytes)
		c.strain()
	}
}

// useful notes that so many of them were a call or a message.
func (c *caller) useful(bytes int) {
	if most := c.mostSpared(); c.spared.Add(2*int64(bytes)) > most {
		c.spared.Store(most)
	}
}

// strain notes that a call was refused or given up, or that a client sent what is of no
// use.
func (c *caller) strain() {
	now := time.Now().UnixNano()
	if now-c.strainsSince.Load() > int64(strainTime) {
		c.strainsSince.Store(now)
		c.strains.Store(0)
	}
	if c.strains.Add(1) >= strainCalls {
		c.strainedAt.Store(now)
	}
}

// strained reports whether the caller is.
func (c *caller) strained() bool { return c.strainedSince(time.Now().Add(-strainTime)) }

// strainedSince reports whether the caller has become strained, again or anew, after a
// time.
func (c *caller) strainedSince(t time.Time) bool {
	at := c.strainedAt.Load()
	return at != 0 && at > t.UnixNano()
}

// rest takes a turn of the caller's and does nothing in it. A stream with many small
// messages rests now and then, so that such streams leave a processor to others, too.
func (c *caller) rest() {
	if c.gate.enter() {
		<-time.After(pauseTime)
		c.gate.turns.Release(1)
	}
}

// leave ends a turn of a caller.
func (g *gate) leave(c *caller) {
	switch {
	case c.strained():
		<-time.After(strainedPause)
	case g.waiting.Load() > 0 && c.begun.Load() >= pauseCalls:
		c.begun.Store(0)
		for n := 0; n == 0 || n < mostPauses && c.busy(); n++ {
			<-time.After(pauseTime)
		}
	}
	g.turns.Release(1)
}

// turn is what a stream has of the gate of its caller.
type turn struct {
	caller *caller
	// taken says that it is, and held that the gate counts it.
	taken, held bool
}

// take begins a turn, unless there is one.
func (t *turn) take() {
	if t.taken {
		return
	}
	gate := &t.caller.gate
	t.taken, t.held = true, gate.try() || gate.enter()
}

// pass ends it. Whoever has to wait for a client passes before.
func (t *turn) pass() {
	if t.held {
		t.caller.gate.leave(t.caller)
	}
	t.taken, t.held = false, false
}
