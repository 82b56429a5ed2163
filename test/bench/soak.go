// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// holdings are the resources that a broker holds.
type holdings struct {
	resident, own int64 // in bytes
	live          int64 // in bytes, as of the last collection; 0 before the first
	goroutines    uint64
	descriptors   int
}

func (h holdings) String() string {
	live := "nothing collected yet"
	if h.live > 0 {
		live = measurement.Mebibytes(h.live) + " live"
	}
	return fmt.Sprintf("%s resident (%s without the program), %s, %d goroutines, %d descriptors",
		measurement.Mebibytes(h.resident), measurement.Mebibytes(h.own), live, h.goroutines, h.descriptors)
}

func hold(ctx context.Context, p *process) (h holdings, err error) {
	memory, err := p.memory("VmRSS", "RssAnon")
	if err != nil {
		return h, err
	}
	h.resident, h.own = memory[0], memory[1]
	told, err := p.tell(ctx)
	if err != nil {
		return h, err
	}
	h.live, h.goroutines = told.live, told.goroutines
	h.descriptors, err = p.descriptors()
	return h, err
}

// soakLoads are called in turns, each by unary calls, over Exchange and with the Go client.
// Each turn makes the same calls, so that the memory after one turn can be compared with
// the memory after another, however fast the machine is.
var soakLoads = []struct {
	name  string
	calls int // of each caller in one way
}{
	{"hash-32", 4000}, {"hash-4k", 3000}, {"encrypt", 3000}, {"certificate", 400}, {"hash-1m", 100},
}

const (
	// soakCallers is the number of callers that call at the same time.
	soakCallers = 16
	// soakQuick is the divisor of the calls of a turn with --quick.
	soakQuick = 50
	// soakSettle is how long a broker may take to release the resources of closed
	// connections.
	soakSettle = 2 * time.Minute
	// soakGrowth is the allowed growth of memory in bytes: from the highest value after a
	// turn of the first half to the lowest after a turn of the second half. Single turns
	// differ by more than that, because of Go's collector.
	soakGrowth = 8 << 20
	// soakLiveGrowth is the same for the live heap. That does not depend on when the
	// collector ran, if nothing large was under way when it did.
	soakLiveGrowth = 1 << 20
	// soakCollections is the number of collections that follow each turn. The first one still
	// finds memory of running calls, and the next two empty every sync.Pool.
	soakCollections = 3
	// soakCollectCalls is the maximum number of small calls that are made to cause these
	// collections. It is far more than a broker needs.
	soakCollectCalls = 1_000_000
	// soakTurns is the least number of turns.
	soakTurns = 4
	// soakResidentTurns is the least number of turns for a verdict on the resident memory.
	// Go keeps the most memory that any turn has needed, and that differs by chance. Fewer
	// turns are judged by the live heap alone.
	soakResidentTurns = 20
)

// soak calls the broker for a long time, all loads in turns. It compares the resources that
// the broker holds after earlier turns with those after later turns, each time without
// connections.
func soak(ctx context.Context, o options, p *programs) (err error) {
	ops, err := operations.New()
	if err != nil {
		return err
	}
	broker, _, err := startBroker(ctx, o, p, withEverything)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.stop()) }()
	calls, failed := 0, 0
	call := func(w *way, callers, each int) error {
		made, err := w.calls(ctx, callers, times(each))
		calls, failed = calls+len(made.took), failed+made.errors
		if made.err != nil {
			runner.Progress("%s: %v", w.name, made.err)
		}
		return err
	}
	turn := func() error {
		for _, load := range soakLoads {
			l, err := newLoad(load.name, ops)
			if err != nil {
				return err
			}
			each := load.calls
			if o.quick {
				each = max(1, each/soakQuick)
			}
			for _, connect := range []string{unary, exchange, library} {
				w, err := connectTo(broker, connect, l)
				if err != nil {
					return err
				}
				if err := errors.Join(call(w, soakCallers, each), w.close()); err != nil {
					return fmt.Errorf("%s: %w", load.name, err)
				}
			}
		}
		return collected(ctx, broker, call)
	}
	fresh, err := hold(ctx, broker)
	if err != nil {
		return err
	}
	runner.Progress("before: %s", fresh)
	if err := turn(); err != nil {
		return err
	}
	first, err := settled(ctx, broker, fresh)
	if err != nil {
		return err
	}
	runner.Progress("after the first turn: %s", first)
	began := time.Now()
	var own, live []int64
	for time.Since(began) < o.soak || len(own) < soakTurns {
		if err := turn(); err != nil {
			return err
		}
		now, err := hold(ctx, broker)
		if err != nil {
			return err
		}
		own, live = append(own, now.own), append(live, now.live)
		runner.Progress("%s, %d calls, %d errors: %s", time.Since(began).Round(time.Second), calls, failed, now)
	}
	last, err := settled(ctx, broker, first)
	if err != nil {
		return err
	}
	fmt.Printf("%d calls in %s, %d errors\n  before:    %s\n  one turn:  %s\n  at the end: %s\n  without the program: %s\n  live heap:           %s\n",
		calls, time.Since(began).Round(time.Second), failed, fresh, first, last, halvesOf(own), halvesOf(live))
	switch {
	case failed > 0:
		return fmt.Errorf("%d calls failed", failed)
	case last.goroutines > first.goroutines || last.descriptors > first.descriptors:
		return errors.New("the broker has more goroutines or descriptors at the end than after the first turn")
	case len(own) >= soakResidentTurns && halvesOf(own).grew(soakGrowth):
		return errors.New("the broker holds more memory after each of the later turns than after any of the earlier ones")
	case halvesOf(live).grew(soakLiveGrowth):
		return errors.New("the broker's live heap is larger after each of the later turns than after any of the earlier ones")
	}
	return nil
}

// halves has the memory after the turns of the first half and of the second half, in bytes.
type halves struct {
	early int64 // the most after a turn of the first half
	late  int64 // the least after a turn of the second half
}

// halvesOf returns the halves of at least two turns.
func halvesOf(turns []int64) halves {
	middle := len(turns) / 2
	return halves{early: slices.Max(turns[:middle]), late: slices.Min(turns[middle:])}
}

func (h halves) grew(allowed int64) bool { return h.late > h.early+allowed }

func (h halves) String() string {
	return fmt.Sprintf("at most %s after a turn of the first half, at least %s after one of the second", measurement.Mebibytes(h.early), measurement.Mebibytes(h.late))
}

// collected makes small calls until Go's collector has run soakCollections times in the
// broker. Without calls the collector would run only after two minutes.
func collected(ctx context.Context, broker *process, call func(w *way, callers, each int) error) (err error) {
	l, err := newLoad("hash-32", nil)
	if err != nil {
		return err
	}
	w, err := connectTo(broker, unary, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	before, err := broker.tell(ctx)
	if err != nil {
		return err
	}
	const callers, each = 4, 100
	for made := 0; ; made += callers * each {
		now, err := broker.tell(ctx)
		switch {
		case err != nil:
			return err
		case now.collections >= before.collections+soakCollections:
			return nil
		case made >= soakCollectCalls:
			return fmt.Errorf("the broker collected garbage %d times during %d calls, expected %d", now.collections-before.collections, made, soakCollections)
		}
		if err := call(w, callers, each); err != nil {
			return err
		}
	}
}

// settled waits until the broker holds no more than before, for at most soakSettle, and
// returns what it holds then.
func settled(ctx context.Context, p *process, before holdings) (holdings, error) {
	deadline := time.Now().Add(soakSettle)
	for {
		now, err := hold(ctx, p)
		if err != nil || (now.goroutines <= before.goroutines && now.descriptors <= before.descriptors) || time.Now().After(deadline) {
			return now, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
}
