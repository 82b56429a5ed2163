// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

const (
	// busyConnections is the number of connections that are busy at one time.
	busyConnections = 100
	// settleTime is how long a server rests before its idle memory is measured.
	settleTime = time.Second
	// idleStarts is the number of starts that are measured for idle memory, because single starts
	// differ by some MiB.
	idleStarts = 10
)

// footprint has the memory of a server before anybody calls it, and during many calls, in
// bytes.
type footprint struct {
	// Way is the way that the server belongs to.
	Way string
	// Starts are times from the start of the program to the first reply, sorted; of
	// brokers only.
	Starts []time.Duration
	// Idle is the resident memory of each start. Own is the part of it that does not come
	// from the program's file. Both are sorted.
	Idle, Own []int64
	// Busy is the memory with busyConnections.
	Busy burden
	// Crowded is the memory with many small calls and without a memory limit, Bounded with
	// the limit of pods.
	Crowded, Bounded burden
}

// burden has the memory of a server during calls.
type burden struct {
	// Resident is the highest resident memory, Peak the highest memory of the control
	// group, 0 if there was none. Both are 0 if the server was killed.
	Resident, Peak int64
	Calls          int
	// Refused counts calls that a limit of the broker refused. Failed counts other failures.
	Refused, Failed int
	// Killed reports whether the kernel ended the server because memory ran out.
	Killed bool
}

// subject is a server whose memory is measured.
type subject struct {
	way string
	// start starts the server with a memory limit in bytes, 0 for none, and returns how
	// long that took.
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

// measureFootprints measures starts and memory, with new servers for each.
func measureFootprints(ctx context.Context, o options, p *programs) ([]footprint, error) {
	var all []footprint
	for _, s := range subjects(o, p) {
		f, err := s.measure(ctx, o)
		if err != nil {
			return nil, err
		}
		runner.Progress("%s: start %s, idle %s, %d busy connections %s, many small calls %s, and with a limit %s",
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
		if *b.into, err = server.measureLoad(ctx, b.load); err != nil {
			return f, err
		}
	}
	return f, nil
}

// measureStart starts a server once, and also measures its idle memory on request.
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

// measureLoad measures the memory of a server during calls, and stops the server.
func (p *process) measureLoad(ctx context.Context, load func(context.Context, *process) (tally, error)) (b burden, err error) {
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
		return b, p.awaitKilled()
	}
	if t.err != nil {
		runner.Progress("%s: a call failed: %v", p.name, t.err)
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

// errors returns how many calls failed. Refusals by limits do not count. Nor do calls that
// failed because the kernel ended the bare server: that is a result of the measurement.
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
