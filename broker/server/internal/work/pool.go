// SPDX-License-Identifier: Apache-2.0

package work

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/clock"
)

// quickTime is how long one worker stays reserved after the last quick call, see [Pool].
const quickTime = 100 * time.Millisecond

// Pool runs slow calls, of unary methods and of streams. It has as many workers as there are
// processors. While there are quick calls as well, it has one worker fewer, if there is more than
// one processor, so quick calls do not wait for slow ones.
type Pool struct {
	count int
	// Processors are the processors of the process.
	Processors Processors
	// quick is the time of the last quick call, a number of package clock, or 0.
	quick atomic.Int64

	mu      sync.Mutex
	running int
	// waiting are the callers that have jobs, each once. They take turns, so a caller with
	// many calls does not delay a caller with few.
	waiting []*Caller
}

// Caller has those queues of a caller that have jobs, each once. They take turns, so a
// connection with many calls does not delay a connection with few. The lock of the pool
// guards the queues.
type Caller struct{ waiting []*Queue }

// NewQueue returns an empty queue of the caller.
func (c *Caller) NewQueue() Queue { return Queue{caller: c} }

// Queue has the jobs of one connection or of one stream. They start in their order.
type Queue struct {
	caller *Caller
	queue  []func()
}

// NewPool returns a pool that has no work yet.
func NewPool() *Pool {
	return &Pool{count: runtime.GOMAXPROCS(0)}
}

// NoteQuickCall records a quick call of a caller that has this many calls now. Each quick call
// calls it, so it writes only from time to time.
func (w *Pool) NoteQuickCall(calls int64, now time.Time) {
	if at := clock.Nanos(now); at-w.quick.Load() > int64(quickTime/8) {
		w.quick.Store(at)
		if calls > quietCalls {
			w.Processors.UseAll()
		} else {
			w.Processors.useOne(now)
		}
	}
}

// Adapt makes the process use one processor while one is enough, see [Processors]. It
// changes GOMAXPROCS.
func (w *Pool) Adapt() { w.Processors.adapts = w.count > 1 }

// limit returns how many jobs may run at one time.
func (w *Pool) limit() int {
	if w.count > 1 && clock.Nanos(time.Now())-w.quick.Load() < int64(quickTime) {
		return w.count - 1
	}
	return w.count
}

// Run runs a job in its turn, and returns once the job has ended.
func (w *Pool) Run(from *Queue, job func()) {
	done := make(chan struct{})
	w.Submit(from, func() {
		defer close(done)
		job()
	})
	<-done
}

// Submit runs a job as soon as its turn comes. It does not wait for it.
func (w *Pool) Submit(from *Queue, job func()) {
	w.Processors.UseAll()
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

// grow starts another worker if there is work for it. The caller has the lock.
func (w *Pool) grow() {
	if len(w.waiting) > 0 && w.running < w.limit() {
		w.running++
		go w.work()
	}
}

// work runs jobs until there are no more jobs, or too many workers.
func (w *Pool) work() {
	for {
		job := w.next()
		if job == nil {
			return
		}
		job()
		// Let the goroutines that send the reply of the job, and quick calls that have arrived
		// meanwhile, run before the next job.
		runtime.Gosched()
	}
}

// next takes the job whose turn it is. If there is no job, or one worker too many, it returns
// nil, and the worker ends.
func (w *Pool) next() func() {
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

// pop removes the first element of a queue and returns it.
func pop[T any](queue *[]T) T {
	var none T
	first := (*queue)[0]
	(*queue)[0] = none
	*queue = (*queue)[1:]
	return first
}
