// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Load is how much a service works on at one time.
type Load struct {
	// InFlight is the maximum number of calls that are worked on at one time, at least 1.
	InFlight int
	// Queue is the maximum number of further calls that may wait. Further ones are refused at
	// once. It may be 0.
	Queue int
	// Wait is how long a call may wait. It is more than 0 if there is a queue.
	Wait time.Duration
}

// Shedder accepts some calls, lets some wait in their order, and refuses the rest early, before they cost anything. Without it, a
// service with too many calls would be slow for all of them. In the end every client would give up before its reply.
type Shedder struct {
	load    Load
	slots   *semaphore.Weighted
	waiting atomic.Int64
}

// NewShedder returns a shedder. It returns an error for a Load that serves no calls.
func NewShedder(load Load) (*Shedder, error) {
	if load.InFlight < 1 || load.Queue < 0 || load.Queue > 0 && load.Wait <= 0 {
		return nil, fmt.Errorf("found %d calls in flight, %d in the queue and a wait of %s, expected at least 1, at least 0, and more than 0s with a queue", load.InFlight, load.Queue, load.Wait)
	}
	return &Shedder{load: load, slots: semaphore.NewWeighted(int64(load.InFlight))}, nil
}

// Waiting returns how many calls wait.
func (s *Shedder) Waiting() int { return int(min(s.waiting.Load(), int64(s.load.Queue))) }

// Enter waits until the call may be worked on. The call ends with leave. The error is a
// [*Refused], or the error of the context if that ends first.
func (s *Shedder) Enter(ctx context.Context) (leave func(), err error) {
	leave = func() { s.slots.Release(1) }
	if s.slots.TryAcquire(1) {
		return leave, nil
	}
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > int64(s.load.Queue) {
		return nil, s.refused()
	}
	waiting, cancel := context.WithTimeout(ctx, s.load.Wait)
	defer cancel()
	if s.slots.Acquire(waiting, 1) == nil {
		return leave, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, s.refused()
}

// refused is the error of a call that does not fit. A queue is empty after its wait, and a service without one may have room at once.
func (s *Shedder) refused() error {
	return &Refused{"the service has too many calls to serve another one in time", max(s.load.Wait, time.Second)}
}
