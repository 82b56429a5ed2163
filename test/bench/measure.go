// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// sample is the result of one measurement.
type sample struct {
	Calls, Errors int
	// PerSecond is calls in a second; P50 and P99 are latencies.
	PerSecond float64
	P50, P99  time.Duration
	// CPU is the server's processor time for each call, or this program's if there is no
	// server. Allocations counts objects for each call.
	CPU         time.Duration
	Allocations float64
	// Resident is the memory of the server afterwards, in bytes.
	Resident int64
}

// cell has the samples of a load in a way with a number of callers, of all rounds.
type cell struct {
	load, way string
	callers   int
	samples   []sample // by round
	err       error    // the first one
}

// measure measures all loads, one after the other.
func (r *results) measure(ctx context.Context, o options, p *programs) error {
	ops, err := operations.New()
	if err != nil {
		return err
	}
	for i, name := range o.loads {
		l, err := newLoad(name, ops)
		if err != nil {
			return err
		}
		if err := r.measureLoad(ctx, o, p, l, fmt.Sprintf("%d/%d %s", i+1, len(o.loads), name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// measureLoad measures a load in each way in turns, each way with its own server.
func (r *results) measureLoad(ctx context.Context, o options, p *programs, l *load, label string) (err error) {
	var ways []*way
	defer func() {
		for _, w := range ways {
			err = errors.Join(err, w.end())
		}
	}()
	for _, name := range o.ways {
		if !has(name, l) {
			continue
		}
		w, err := open(ctx, o, p, name, l)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		ways = append(ways, w)
	}
	cells := map[int]map[string]*cell{}
	for _, callers := range o.callers {
		cells[callers] = map[string]*cell{}
		for _, w := range ways {
			c := &cell{load: l.name, way: w.name, callers: callers}
			cells[callers][w.name] = c
			r.cells = append(r.cells, c)
		}
	}
	for round := range o.rounds {
		for _, callers := range shuffled(o.callers) {
			for _, w := range shuffled(ways) {
				c := cells[callers][w.name]
				s, err := w.measure(ctx, callers, o.time, &c.err)
				if err != nil {
					return fmt.Errorf("%s: %w", w.name, err)
				}
				c.samples = append(c.samples, s)
			}
		}
		runner.Progress("%s, round %d of %d: %s", label, round+1, o.rounds, summary(o.callers, cells, ways, round))
	}
	return nil
}

// summary is a line about a round: calls in a second.
func summary(numbers []int, cells map[int]map[string]*cell, ways []*way, round int) string {
	var parts []string
	for _, callers := range numbers {
		var found []string
		for _, w := range ways {
			s := cells[callers][w.name].samples[round]
			text := fmt.Sprintf("%s %.0f", w.name, s.PerSecond)
			if s.Errors > 0 {
				text += fmt.Sprintf(" (%d errors)", s.Errors)
			}
			found = append(found, text)
		}
		parts = append(parts, fmt.Sprintf("%d callers: %s", callers, strings.Join(found, ", ")))
	}
	return strings.Join(parts, "; ")
}

func shuffled[T any](of []T) []T {
	of = slices.Clone(of)
	rand.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	return of
}

// measure makes calls for a time. It counts failed calls and keeps the first error.
func (w *way) measure(ctx context.Context, callers int, d time.Duration, first *error) (sample, error) {
	// Collect the garbage of the last measurement first, so that it does not count here.
	runtime.GC()
	if _, err := w.calls(ctx, callers, forDuration(max(d/8, 10*time.Millisecond))); err != nil {
		return sample{}, err
	}
	before, err := w.spent(ctx)
	if err != nil {
		return sample{}, err
	}
	made, err := w.calls(ctx, callers, forDuration(d))
	if err != nil {
		return sample{}, err
	}
	after, err := w.spent(ctx)
	if err != nil {
		return sample{}, err
	}
	if *first == nil {
		*first = made.err
	}
	s := sample{Calls: len(made.took), Errors: made.errors, PerSecond: float64(len(made.took)) / made.elapsed.Seconds()}
	if s.Calls > 0 {
		slices.Sort(made.took)
		s.P50, s.P99 = made.took[s.Calls/2], made.took[s.Calls*99/100]
		s.CPU = (after.cpu - before.cpuAfter) / time.Duration(s.Calls)
		s.Allocations = max(0, (float64(after.allocations)-float64(before.allocations)-before.own)/float64(s.Calls))
	}
	s.Resident = after.resident
	return s, nil
}

// spent has what a server has used since its start.
type spent struct {
	cpu         time.Duration // read before the request for the other numbers
	cpuAfter    time.Duration
	allocations uint64
	own         float64 // allocations of the request for these numbers
	resident    int64
}

func (w *way) spent(ctx context.Context) (s spent, err error) {
	if w.server == nil {
		s.cpu, err = measurement.ProcessorTime(os.Getpid())
		s.cpuAfter = s.cpu
		return s, err
	}
	if s.cpu, err = w.server.cpu(); err != nil {
		return s, err
	}
	first, err := w.server.tell(ctx)
	if err != nil {
		return s, err
	}
	second, err := w.server.tell(ctx)
	if err != nil {
		return s, err
	}
	s.allocations, s.own = second.allocations, float64(second.allocations-first.allocations)
	memory, err := w.server.memory("VmRSS")
	if err != nil {
		return s, err
	}
	s.resident = memory[0]
	s.cpuAfter, err = w.server.cpu()
	return s, err
}

// made has the calls of a measurement.
type made struct {
	took    []time.Duration // durations of the calls that did not fail
	errors  int
	err     error // the first one
	elapsed time.Duration
}

// enough reports whether a caller has made enough calls since it began.
type enough func(calls int, took time.Duration) bool

// forDuration ends a caller when the time is over, but not before its first call. On a loaded
// machine a caller may get no processor for longer than a round.
func forDuration(d time.Duration) enough {
	return func(calls int, took time.Duration) bool { return calls > 0 && took >= d }
}

// times ends a caller after n calls, however long they take.
func times(n int) enough {
	return func(calls int, _ time.Duration) bool { return calls >= n }
}

// calls lets a number of callers make calls, each until enough returns true.
func (w *way) calls(ctx context.Context, callers int, until enough) (made, error) {
	found := make([]made, callers)
	var group sync.WaitGroup
	began := time.Now()
	for caller := range callers {
		group.Go(func() {
			f := &found[caller]
			f.took = make([]time.Duration, 0, 4096)
			for calls, last := 0, time.Now(); !until(calls, last.Sub(began)) && ctx.Err() == nil; calls++ {
				err := w.call(ctx, caller)
				now := time.Now()
				if err != nil {
					f.errors++
					f.err = err
				} else {
					f.took = append(f.took, now.Sub(last))
				}
				last = now
			}
		})
	}
	group.Wait()
	all := made{elapsed: time.Since(began)}
	for _, f := range found {
		all.took = append(all.took, f.took...)
		all.errors += f.errors
		if all.err == nil {
			all.err = f.err
		}
	}
	return all, ctx.Err()
}
