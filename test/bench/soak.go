// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
)

// holdings is what a broker holds.
type holdings struct {
	resident, own int64 // in bytes
	goroutines    uint64
	descriptors   int
}

func (h holdings) String() string {
	return fmt.Sprintf("%s resident (%s without the program), %d goroutines, %d descriptors", mebibytes(h.resident), mebibytes(h.own), h.goroutines, h.descriptors)
}

func hold(ctx context.Context, p *process) (h holdings, err error) {
	memory, err := p.memory("VmRSS", "RssAnon")
	if err != nil {
		return h, err
	}
	h.resident, h.own = memory[0], memory[1]
	if _, h.goroutines, err = p.tell(ctx); err != nil {
		return h, err
	}
	h.descriptors, err = p.descriptors()
	return h, err
}

// soakLoads are called by turns, each unary and over Exchange.
var soakLoads = []string{"hash-32", "hash-4k", "encrypt", "certificate", "hash-1m"}

const (
	// soakPart is how long one load is called in one way.
	soakPart = 5 * time.Second
	// soakSettle is how long a broker may take to give back what it held.
	soakSettle = 30 * time.Second
	// soakGrowth is how much more memory the least of the second half of turns may
	// leave than the most of the first half, in bytes. What one turn leaves is for
	// Go's collector to decide, and goes up and down by more than that.
	soakGrowth = 8 << 20
	// soakTurns is the least number of turns.
	soakTurns = 4
)

// soak calls the broker for a long time, all loads by turns, and compares what it
// holds after the earlier turns with what it holds after the later ones, each time
// with nobody connected.
func soak(ctx context.Context, o options, p *programs) (err error) {
	ops, err := operations.New()
	if err != nil {
		return err
	}
	broker, _, err := startBroker(ctx, o, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.stop()) }()
	part := min(soakPart, max(o.soak/40, 100*time.Millisecond))
	calls, failed := 0, 0
	turn := func() error {
		for _, name := range soakLoads {
			l, err := newLoad(name, ops)
			if err != nil {
				return err
			}
			for _, connect := range []string{unary, exchange, library} {
				w, err := connectTo(broker, connect, l)
				if err != nil {
					return err
				}
				made, err := w.calls(ctx, 16, part)
				calls, failed = calls+len(made.took), failed+made.errors
				if made.err != nil {
					progress("%s, %s: %v", name, connect, made.err)
				}
				if err = errors.Join(err, w.close()); err != nil {
					return err
				}
			}
		}
		return nil
	}
	fresh, err := hold(ctx, broker)
	if err != nil {
		return err
	}
	progress("before: %s", fresh)
	if err := turn(); err != nil {
		return err
	}
	first, err := settled(ctx, broker, fresh)
	if err != nil {
		return err
	}
	progress("after the first turn: %s", first)
	began := time.Now()
	var own []int64
	for time.Since(began) < o.soak || len(own) < soakTurns {
		if err := turn(); err != nil {
			return err
		}
		now, err := hold(ctx, broker)
		if err != nil {
			return err
		}
		own = append(own, now.own)
		progress("%s, %d calls, %d errors: %s", time.Since(began).Round(time.Second), calls, failed, now)
	}
	last, err := settled(ctx, broker, first)
	if err != nil {
		return err
	}
	early, late := slices.Max(own[:len(own)/2]), slices.Min(own[len(own)/2:])
	fmt.Printf("%d calls in %s, %d errors\n  before:    %s\n  one turn:  %s\n  at the end: %s\n  without the program: at most %s after a turn of the first half, at least %s after one of the second\n",
		calls, time.Since(began).Round(time.Second), failed, fresh, first, last, mebibytes(early), mebibytes(late))
	switch {
	case failed > 0:
		return fmt.Errorf("%d calls failed", failed)
	case last.goroutines > first.goroutines || last.descriptors > first.descriptors:
		return errors.New("the broker has more goroutines or descriptors at the end than after the first turn")
	case late > early+soakGrowth:
		return errors.New("the broker holds more memory after each of the later turns than after any of the earlier ones")
	}
	return nil
}

// settled waits until the broker holds no more than it did before, or no longer
// than it may take, and returns what it holds then.
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
