// SPDX-License-Identifier: Apache-2.0

package server

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// quickTime is how long no quick call may have come before all processors serve
// those that take their time.
const quickTime = 100 * time.Millisecond

// quickSize is the largest request of an operation in bytes that is served where it
// was received; larger ones go to the workers. It is some ten microseconds by the
// slowest digest. Keys by id are in memory.
func quickSize(op engine.Operation) int {
	switch op {
	case engine.HashData, engine.EncryptData, engine.DecryptData:
		return 16 << 10
	}
	return 0
}

// workers serve the calls that take their time, unary ones and those of streams.
// There are as many of them as processors. Where quick calls come as well, one
// fewer, if there is more than one processor, so that calls which are served at once
// need not wait for one that is not.
type workers struct {
	processors int
	// used are those that the process uses.
	used processors
	// quick is when the last quick call came, in nanoseconds since began.
	began time.Time
	quick atomic.Int64

	mu      sync.Mutex
	running int
	// waiting are the callers with jobs, each once. They take turns, so that a caller
	// with many calls does not hold up one with a few.
	waiting []*turns
}

// turns are the queues of a caller with jobs in them, each once, which take turns for
// the same reason. The lock of the workers guards it, as it does jobs.
type turns struct{ waiting []*jobs }

// jobs is the queue of a connection or of a stream.
type jobs struct {
	caller *turns
	queue  []func()
}

func newWorkers() *workers {
	w := &workers{processors: runtime.GOMAXPROCS(0), began: time.Now()}
	w.quick.Store(-int64(quickTime))
	return w
}

// quickCall notes that a quick call of a caller came. It does so seldom, since all calls
// ask for it.
func (w *workers) quickCall(from *caller, now time.Time) {
	if at := int64(now.Sub(w.began)); at-w.quick.Load() > int64(quickTime/8) {
		w.quick.Store(at)
		if from.calls.Load() > quietCalls {
			w.used.need()
		} else {
			w.used.quiet(now)
		}
	}
}

// limit is how many jobs may run at one time.
func (w *workers) limit() int {
	if w.processors > 1 && int64(time.Since(w.began))-w.quick.Load() < int64(quickTime) {
		return w.processors - 1
	}
	return w.processors
}

// run runs a job in its turn and returns once it is done.
func (w *workers) run(from *jobs, job func()) {
	done := make(chan struct{})
	w.submit(from, func() {
		defer close(done)
		job()
	})
	<-done
}

// submit runs a job as soon as it is its turn.
func (w *workers) submit(from *jobs, job func()) {
	w.used.need()
	w.mu.Lock()
	defer w.mu.Unlock()
	from.queue = append(from.queue, job)
	if len(from.queue) == 1 {
		from.caller.waiting = append(from.caller.waiting, from)
		if len(from.caller.waiting) == 1 {
			w.waiting = append(w.waiting, from.caller)
		}
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
	caller := pop(&w.waiting)
	from := pop(&caller.waiting)
	job := pop(&from.queue)
	if len(from.queue) > 0 {
		caller.waiting = append(caller.waiting, from)
	}
	if len(caller.waiting) > 0 {
		w.waiting = append(w.waiting, caller)
	}
	w.grow()
	return job
}

// pop takes the first of a queue.
func pop[T any](queue *[]T) T {
	var none T
	first := (*queue)[0]
	(*queue)[0] = none
	*queue = (*queue)[1:]
	return first
}
