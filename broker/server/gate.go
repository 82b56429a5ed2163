// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"runtime"
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

// mostYields is how often a connection that was read lets others go on at most, before
// the next one is read.
const mostYields = 64

// leave ends a turn. The calls that were read go first where others wait to be read,
// and while busy reports that many have been read that have not been replied to: those
// that can go on do, and those that cannot take no time.
func (g *gate) leave(busy func() bool) {
	if g.waiting.Load() > 0 {
		runtime.Gosched()
		for n := 1; n < mostYields && busy(); n++ {
			runtime.Gosched()
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
		t.caller.gate.leave(t.caller.busy)
	}
	t.taken, t.held = false, false
}
