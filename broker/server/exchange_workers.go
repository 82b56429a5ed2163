// SPDX-License-Identifier: Apache-2.0

package server

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// quietTime is how long no quick call may have come before all processors serve
// those that take their time.
const quietTime = 100 * time.Millisecond

// workers serve the calls that take their time. There are as many of them as
// processors. Where quick calls come as well, one fewer, if there is more than one
// processor, so that calls which are served at once need not wait for one that is
// not.
type workers struct {
	processors int
	// quick is when the last quick call came, in nanoseconds since began.
	began time.Time
	quick atomic.Int64

	mu      sync.Mutex
	running int
	// waiting are the queues with jobs in them, each once. They take turns, so
	// that a client with many calls does not hold up one with a few.
	waiting []*jobs
}

func newWorkers() *workers {
	w := &workers{processors: runtime.GOMAXPROCS(0), began: time.Now()}
	w.quick.Store(-int64(quietTime))
	return w
}

// jobs is the queue of one stream. That of its workers guards it.
type jobs struct{ queue []func() }

// quickCall tells that a quick call came. It writes seldom, since all streams do.
func (w *workers) quickCall(now time.Time) {
	if at := int64(now.Sub(w.began)); at-w.quick.Load() > int64(quietTime/8) {
		w.quick.Store(at)
	}
}

// limit is how many jobs may run at one time.
func (w *workers) limit() int {
	if w.processors > 1 && int64(time.Since(w.began))-w.quick.Load() < int64(quietTime) {
		return w.processors - 1
	}
	return w.processors
}

// submit runs a job as soon as it is its turn.
func (w *workers) submit(from *jobs, job func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from.queue = append(from.queue, job)
	if len(from.queue) == 1 {
		w.waiting = append(w.waiting, from)
	}
	w.grow()
}

// grow starts another worker where there is work for it. The caller has the lock.
func (w *workers) grow() {
	if len(w.waiting) > 0 && w.running < w.limit() {
		w.running++
		go w.work()
	}
}

// work runs jobs until there are none, or too many workers.
func (w *workers) work() {
	for {
		job := w.next()
		if job == nil {
			return
		}
		job()
		// Its reply, and quick calls that came meanwhile, need not wait until the
		// next job is done.
		runtime.Gosched()
	}
}

// next takes the job whose turn it is, nil where the worker is one too many.
func (w *workers) next() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 || w.running > w.limit() {
		w.running--
		return nil
	}
	from := w.waiting[0]
	w.waiting[0] = nil
	w.waiting = w.waiting[1:]
	job := from.queue[0]
	from.queue[0] = nil
	from.queue = from.queue[1:]
	if len(from.queue) > 0 {
		w.waiting = append(w.waiting, from)
	}
	w.grow()
	return job
}
