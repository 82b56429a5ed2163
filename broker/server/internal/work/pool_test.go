// SPDX-License-Identifier: Apache-2.0

package work

import (
	"runtime"
	"testing"
	"time"
)

// crew has the workers of a machine with three processors, and jobs that wait for each other.
type crew struct {
	*Pool
	queue   Queue
	started chan struct{}
	goOn    chan struct{}
}

func newCrew() *crew {
	c := &crew{Pool: NewPool(), started: make(chan struct{}, 16), goOn: make(chan struct{})}
	c.count = 3
	c.queue.caller = new(Caller)
	return c
}

// give gives the workers this many jobs. Each job waits until it may continue.
func (c *crew) give(n int) {
	for range n {
		c.Submit(&c.queue, func() {
			c.started <- struct{}{}
			<-c.goOn
		})
	}
}

func (c *crew) now() (running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// await waits until so many workers run.
func (c *crew) await(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); c.now() != want; {
		if time.Now().After(deadline) {
			t.Fatalf("%d workers, want %d", c.now(), want)
		}
		runtime.Gosched()
	}
}

func TestAllProcessorsServeSlowCallsWhileNoQuickOnesCome(t *testing.T) {
	c := newCrew()
	c.give(5)
	if got := c.now(); got != 3 {
		t.Errorf("%d workers, want one for each of three processors", got)
	}
	close(c.goOn)
	c.await(t, 0)
	if got := len(c.started); got != 5 {
		t.Errorf("%d jobs were done, want all 5", got)
	}
}

func TestOneProcessorIsLeftForQuickCallsWhileTheyCome(t *testing.T) {
	soon := time.Now().Add(time.Hour) // so that slow tests do not change the result
	t.Run("of those that are free", func(t *testing.T) {
		c := newCrew()
		c.NoteQuickCall(1, soon)
		c.give(5)
		if got := c.now(); got != 2 {
			t.Errorf("%d workers, want one fewer than processors", got)
		}
		close(c.goOn)
		c.await(t, 0)
	})
	t.Run("of those that are busy, once a job is done", func(t *testing.T) {
		c := newCrew()
		c.give(6)
		for range 3 { // an idle worker ends if there are too many workers
			<-c.started
		}
		c.NoteQuickCall(1, soon)
		if got := c.now(); got != 3 {
			t.Errorf("%d workers before a job is done, want 3", got)
		}
		c.goOn <- struct{}{}
		c.await(t, 2)
		c.quick.Store(-int64(time.Hour)) // no more quick calls
		c.goOn <- struct{}{}
		c.await(t, 3)
		close(c.goOn)
		c.await(t, 0)
		if got := len(c.started); got != 3 {
			t.Errorf("%d more jobs were done, want the other 3", got)
		}
	})
	t.Run("but not of a single one", func(t *testing.T) {
		c := newCrew()
		c.count = 1
		c.NoteQuickCall(1, soon)
		c.give(2)
		if got := c.now(); got != 1 {
			t.Errorf("%d workers, want 1", got)
		}
		close(c.goOn)
		c.await(t, 0)
	})
}
