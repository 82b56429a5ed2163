// SPDX-License-Identifier: Apache-2.0

package work

import (
	"slices"
	"strings"
	"testing"
)

// queues belong to two callers: a with three connections, and b with one. There is one processor, which is busy until goOn is closed.
type queues struct {
	*crew
	from  map[string]*Queue
	order chan string
}

func newQueues() *queues {
	q := &queues{crew: newCrew(), from: map[string]*Queue{}, order: make(chan string, 100)}
	q.count = 1
	a, b := new(Caller), new(Caller)
	for name, caller := range map[string]*Caller{"a1": a, "a2": a, "a3": a, "b1": b} {
		q.from[name] = &Queue{caller: caller}
	}
	q.give(1)
	return q
}

func (q *queues) add(name string, n int) {
	for range n {
		q.Submit(q.from[name], func() { q.order <- name })
	}
}

// all ends the wait and returns the order in which jobs were done.
func (q *queues) all(t *testing.T) []string {
	t.Helper()
	close(q.goOn)
	q.await(t, 0)
	close(q.order)
	var names []string
	for name := range q.order {
		names = append(names, name)
	}
	return names
}

func TestManySlowCallsOfOneCallerHoldUpAnotherOneByOneTurn(t *testing.T) {
	q := newQueues()
	for _, name := range []string{"a1", "a2", "a3"} {
		q.add(name, 10)
	}
	q.add("b1", 3)
	got := q.all(t)
	if len(got) != 33 {
		t.Fatalf("%d jobs were done, want 33", len(got))
	}
	if got, want := strings.Join(got[:6], " "), "a1 b1 a2 b1 a3 b1"; got != want {
		t.Errorf("it began with %s, want %s", got, want)
	}
}

func TestConnectionsOfOneCallerTakeTurns(t *testing.T) {
	q := newQueues()
	q.add("a1", 5)
	q.add("a2", 2)
	q.add("a3", 1)
	if got, want := strings.Join(q.all(t), " "), "a1 a2 a3 a1 a2 a1 a1 a1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAQueueThatBecameEmptyIsTakenUpAgain(t *testing.T) {
	q := newQueues()
	again := make(chan struct{})
	q.Submit(q.from["a1"], func() {
		q.add("b1", 2)
		q.add("a1", 1)
		close(again)
	})
	got := q.all(t)
	<-again
	if want := []string{"b1", "a1", "b1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
