// SPDX-License-Identifier: Apache-2.0

package server

import (
	"runtime"
	"sync"
)

// workers serve the calls that take their time. There are fewer of them than
// processors, where there is more than one, so that calls which are served at
// once never wait for one that is not.
type workers struct {
	limit int

	mu      sync.Mutex
	running int
	// waiting are the queues with jobs in them, each once. They take turns, so
	// that a client with many calls does not hold up one with a few.
	waiting []*jobs
}

func newWorkers() *workers { return &workers{limit: max(1, runtime.GOMAXPROCS(0)-1)} }

// jobs is the queue of one stream. That of its workers guards it.
type jobs struct{ queue []func() }

// submit runs a job as soon as it is its turn.
func (w *workers) submit(from *jobs, job func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from.queue = append(from.queue, job)
	if len(from.queue) == 1 {
		w.waiting = append(w.waiting, from)
	}
	if w.running < w.limit {
		w.running++
		go w.work()
	}
}

// work runs jobs until there are none.
func (w *workers) work() {
	for {
		job := w.next()
		if job == nil {
			return
		}
		job()
	}
}

func (w *workers) next() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
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
	return job
}
