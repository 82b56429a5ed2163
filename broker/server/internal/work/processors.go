// SPDX-License-Identifier: Apache-2.0

package work

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Processors makes the process use one processor while that is enough. With more, the
// goroutines of a call wake each other across processors, which takes a third of the time
// of a small call.
type Processors struct {
	// adapts says that the process may change how many it uses.
	adapts bool
	// one says that it uses one.
	one atomic.Bool
	// needed is until when it needs all, in nanoseconds since 1970.
	needed atomic.Int64
	mu     sync.Mutex
}

// One processor is enough while callers have no more calls and streams at one time than
// quietCalls, none of them takes its time, no client sends QuietBytes at once and no
// connection waits to be read. It has to be so for quietTime.
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
	now := time.Now().UnixNano()
	if until := now + int64(quietTime); until-p.needed.Load() > int64(quietTime/8) {
		p.needed.Store(until)
	}
	if p.one.Load() {
		p.use(false)
	}
}

// useOne makes the process use one processor, unless it needed all of them of late. now is
// the present time.
func (p *Processors) useOne(now time.Time) {
	if p.adapts && !p.one.Load() && now.UnixNano() > p.needed.Load() {
		p.use(true)
	}
}

// use changes how many are used.
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
