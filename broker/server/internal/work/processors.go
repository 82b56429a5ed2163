// SPDX-License-Identifier: Apache-2.0

package work

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/clock"
)

// Processors makes the process use one processor while one is enough. With more
// processors, the goroutines of a call wake each other across processors, which takes a
// third of the time of a small call.
type Processors struct {
	// adapts reports whether the number of processors may change.
	adapts bool
	// one is true while the process uses one processor.
	one atomic.Bool
	// needed is the time until which the process needs all processors, a number of package clock.
	needed atomic.Int64
	mu     sync.Mutex
}

// One processor is enough if all of this holds for quietTime: no caller has more than
// quietCalls calls and streams at one time, no call is slow, no client sends QuietBytes at
// once, and no connection waits to be read.
const (
	quietTime  = time.Second
	quietCalls = 2
	QuietBytes = 8 << 10
)

// UseAll makes the process use all processors, now and for quietTime.
func (p *Processors) UseAll() {
	if !p.adapts {
		return
	}
	if until := clock.Nanos(time.Now()) + int64(quietTime); until-p.needed.Load() > int64(quietTime/8) {
		p.needed.Store(until)
	}
	if p.one.Load() {
		p.use(false)
	}
}

// useOne makes the process use one processor, unless it needed all of them within the last
// quietTime.
func (p *Processors) useOne(now time.Time) {
	if p.adapts && !p.one.Load() && clock.Nanos(now) > p.needed.Load() {
		p.use(true)
	}
}

// Quiet reports whether the process uses one processor because all calls are quick.
func (p *Processors) Quiet() bool { return p.one.Load() }

// use makes the process use one processor, or all of them.
func (p *Processors) use(one bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.one.Load() == one {
		return
	}
	p.one.Store(one)
	if one {
		runtime.GOMAXPROCS(1)
	} else {
		runtime.SetDefaultGOMAXPROCS()
	}
}
