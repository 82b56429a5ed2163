// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
)

const (
	// busyConnections is how many connections are busy at one time.
	busyConnections = 100
	// settleTime is what a broker gets before it counts as idle.
	settleTime = time.Second
)

// footprint is what a broker takes before anybody calls it, and while many do.
// Memory is in bytes.
type footprint struct {
	// Starts are times from the start of the program to the first reply, sorted.
	Starts []time.Duration
	// Idle is resident memory, Own that part of it that is not the program's file.
	Idle, Own           int64
	IdleFloor, OwnFloor int64
	// Busy is the most that was resident with busyConnections.
	Busy   int64
	Errors int
}

// measureFootprint measures starts and memory, each with brokers of their own.
func measureFootprint(ctx context.Context, o options, p *programs) (f footprint, err error) {
	for range o.startup {
		broker, took, err := startBroker(ctx, o, p)
		if err != nil {
			return f, err
		}
		f.Starts = append(f.Starts, took)
		if err := broker.stop(); err != nil {
			return f, err
		}
	}
	slices.Sort(f.Starts)
	broker, _, err := startBroker(ctx, o, p)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, broker.stop()) }()
	if f.Idle, f.Own, err = idle(ctx, broker); err != nil {
		return f, err
	}
	if f.Errors, err = busy(ctx, broker, 8*o.time); err != nil {
		return f, err
	}
	most, err := broker.memory("VmHWM")
	if err != nil {
		return f, err
	}
	f.Busy = most[0]
	bare, err := startFloor(o, p, "grpc")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	if err := bare.serves(ctx); err != nil {
		return f, err
	}
	if f.IdleFloor, f.OwnFloor, err = idle(ctx, bare); err != nil {
		return f, err
	}
	progress("start %s, idle %s (bare server %s), %d busy connections %s",
		milliseconds(median(f.Starts)), mebibytes(f.Idle), mebibytes(f.IdleFloor), busyConnections, mebibytes(f.Busy))
	return f, nil
}

func idle(ctx context.Context, p *process) (all, own int64, err error) {
	select {
	case <-time.After(settleTime):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	memory, err := p.memory("VmRSS", "RssAnon")
	if err != nil {
		return 0, 0, err
	}
	return memory[0], memory[1], nil
}

// busy calls on many connections for a while and returns how many calls failed.
func busy(ctx context.Context, p *process, d time.Duration) (failed int, err error) {
	l, err := newLoad("hash-4k", nil)
	if err != nil {
		return 0, err
	}
	var conns []*grpc.ClientConn
	defer func() {
		for _, conn := range conns {
			err = errors.Join(err, conn.Close())
		}
	}()
	results := make([]made, busyConnections)
	var group sync.WaitGroup
	for i := range busyConnections {
		conn, err := dial(p.socket)
		if err != nil {
			return 0, err
		}
		conns = append(conns, conn)
		group.Go(func() { results[i], _ = (&way{call: unaryCall(conn, l)}).calls(ctx, 1, d) })
	}
	group.Wait()
	for _, r := range results {
		failed += r.errors
		if r.err != nil {
			err = fmt.Errorf("a call failed with %d busy connections: %w", busyConnections, r.err)
		}
	}
	if err != nil {
		progress("%v", err)
	}
	return failed, ctx.Err()
}
