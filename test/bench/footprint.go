// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// busyConnections is how many connections are busy at one time.
	busyConnections = 100
	// settleTime is what a server gets before it counts as idle.
	settleTime = time.Second
	// idleStarts is how many starts idle memory is measured of: what one start takes
	// is chance by some MiB.
	idleStarts = 10
)

// footprint is what a server takes before anybody calls it, and while many do.
// Memory is in bytes.
type footprint struct {
	// Way is the way that the server belongs to.
	Way string
	// Starts are times from the start of the program to the first reply, sorted; of
	// brokers only.
	Starts []time.Duration
	// Idle is resident memory by start, Own that part of it that is not the program's
	// file, both sorted.
	Idle, Own []int64
	// Busy is with busyConnections.
	Busy burden
	// Crowded is with many small calls and no limit of memory, Bounded with the limit
	// that pods have.
	Crowded, Bounded burden
}

// burden is what a server took while it was called.
type burden struct {
	// Resident is the most that was resident, Peak the most that the control group
	// had, 0 where there was none. Both are 0 where the server was killed.
	Resident, Peak int64
	Calls          int
	// Refused are calls that a limit of the broker refused. Failed are the others.
	Refused, Failed int
	// Killed is set where the system ended the server for want of memory.
	Killed bool
}

// subject is a server whose memory is measured.
type subject struct {
	way string
	// start starts it with a limit of memory in bytes, 0 for none, and returns how long
	// that took.
	start func(ctx context.Context, memory int64) (*process, time.Duration, error)
	times int // how often it is started
}

func subjects(o options, p *programs) []subject {
	broker := func(programs *programs) func(context.Context, int64) (*process, time.Duration, error) {
		return func(ctx context.Context, memory int64) (*process, time.Duration, error) {
			return startBroker(ctx, o, programs, manner{everything, memory})
		}
	}
	all := []subject{
		{unary, broker(p), o.startup},
		{floor, func(ctx context.Context, memory int64) (*process, time.Duration, error) {
			bare, err := startFloor(o, p, "grpc", memory)
			if err != nil {
				return nil, 0, err
			}
			if err := bare.serves(ctx); err != nil {
				return nil, 0, errors.Join(err, bare.stop())
			}
			return bare, 0, nil
		}, min(o.startup, idleStarts)},
	}
	if o.before != "" {
		programs := *p
		programs.broker = o.before
		all = append(all, subject{earlier + unary, broker(&programs), o.startup})
	}
	return all
}

// measureFootprints measures starts and memory, each with servers of their own.
func measureFootprints(ctx context.Context, o options, p *programs) ([]footprint, error) {
	var all []footprint
	for _, s := range subjects(o, p) {
		f, err := s.measure(ctx, o)
		if err != nil {
			return nil, err
		}
		progress("%s: start %s, idle %s, %d busy connections %s, many small calls %s, and with a limit %s",
			s.way, f.startsText(), rangeOf(f.Idle), busyConnections, f.Busy, f.Crowded, f.Bounded)
		all = append(all, f)
	}
	return all, nil
}

func (s subject) measure(ctx context.Context, o options) (footprint, error) {
	f := footprint{Way: s.way}
	for i := range s.times {
		if err := s.measureStart(ctx, &f, i < idleStarts); err != nil {
			return f, err
		}
	}
	slices.Sort(f.Starts)
	slices.Sort(f.Idle)
	slices.Sort(f.Own)
	for _, b := range []struct {
		into   *burden
		memory int64
		load   func(context.Context, *process) (tally, error)
	}{
		{&f.Busy, 0, func(ctx context.Context, p *process) (tally, error) { return busy(ctx, p, 8*o.time) }},
		{&f.Crowded, 0, o.crowd.call},
		{&f.Bounded, podMemory, o.crowd.call},
	} {
		server, _, err := s.start(ctx, b.memory)
		if err != nil {
			return f, err
		}
		if *b.into, err = server.under(ctx, b.load); err != nil {
			return f, err
		}
	}
	return f, nil
}

// measureStart starts a server once, and measures it idle if that is wanted.
func (s subject) measureStart(ctx context.Context, f *footprint, alsoIdle bool) (err error) {
	server, took, err := s.start(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	if took > 0 {
		f.Starts = append(f.Starts, took)
	}
	if !alsoIdle {
		return nil
	}
	select {
	case <-time.After(settleTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	memory, err := server.memory("VmRSS", "RssAnon")
	if err != nil {
		return err
	}
	f.Idle, f.Own = append(f.Idle, memory[0]), append(f.Own, memory[1])
	return nil
}

// under measures what a server takes while it is called, and stops it.
func (p *process) under(ctx context.Context, load func(context.Context, *process) (tally, error)) (b burden, err error) {
	t, err := load(ctx, p)
	if err != nil {
		return b, errors.Join(err, p.stop())
	}
	b.Calls, b.Refused, b.Failed = t.calls, t.refused, t.failed
	if p.group != nil {
		kills, err := p.group.Kills()
		if err != nil {
			return b, errors.Join(err, p.stop())
		}
		b.Killed = kills > 0
	}
	if b.Killed {
		return b, p.buried()
	}
	if t.err != nil {
		progress("%s: a call failed: %v", p.name, t.err)
	}
	memory, err := p.memory("VmHWM")
	if err != nil {
		return b, errors.Join(err, p.stop())
	}
	b.Resident = memory[0]
	if p.group != nil {
		if b.Peak, err = p.group.Peak(); err != nil {
			return b, errors.Join(err, p.stop())
		}
	}
	return b, p.stop()
}

// errors counts the calls that failed: refusals are what limits are for, and that the
// system ended the bare server is what the measurement is there to find.
func (f footprint) errors() int {
	n := 0
	for _, b := range []burden{f.Busy, f.Crowded, f.Bounded} {
		if !b.Killed || f.Way != floor {
			n += b.Failed
		}
	}
	return n
}

func (f footprint) calls() int { return f.Busy.Calls + f.Crowded.Calls + f.Bounded.Calls }
