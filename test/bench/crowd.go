// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tally counts calls.
type tally struct {
	calls, refused, failed int
	err                    error // of the first failed call
}

func (t *tally) add(other tally) {
	t.calls, t.refused, t.failed = t.calls+other.calls, t.refused+other.refused, t.failed+other.failed
	if t.err == nil {
		t.err = other.err
	}
}

// count counts a call by its result.
func (t *tally) count(err error) {
	t.calls++
	switch {
	case err == nil:
	case status.Code(err) == codes.ResourceExhausted:
		t.refused++
	default:
		t.failed++
		if t.err == nil {
			t.err = err
		}
	}
}

// crowd is many small calls at the same time.
type crowd struct {
	connections, calls int // calls of each connection at the same time
	waves              int // each begins once the previous calls have ended
}

func (c crowd) String() string {
	return fmt.Sprintf("%d connections with %d hashes of 32 bytes on each at the same time, in %d waves", c.connections, c.calls, c.waves)
}

// call makes the calls.
func (c crowd) call(ctx context.Context, p *process) (all tally, err error) {
	l, err := newLoad("hash-32", nil)
	if err != nil {
		return all, err
	}
	conns, end, err := dialMany(p.socket, c.connections)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, end()) }()
	for range c.waves {
		var group sync.WaitGroup
		tallies := make([]tally, len(conns)*c.calls)
		for i := range tallies {
			group.Go(func() { tallies[i].count(unaryCall(conns[i/c.calls], l)(ctx, 0)) })
		}
		group.Wait()
		for _, t := range tallies {
			all.add(t)
		}
	}
	return all, ctx.Err()
}

// busy calls on many connections, one call at a time on each, for a while.
func busy(ctx context.Context, p *process, d time.Duration) (all tally, err error) {
	l, err := newLoad("hash-4k", nil)
	if err != nil {
		return all, err
	}
	conns, end, err := dialMany(p.socket, busyConnections)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, end()) }()
	tallies := make([]tally, len(conns))
	var group sync.WaitGroup
	began := time.Now()
	for i, conn := range conns {
		call := unaryCall(conn, l)
		group.Go(func() {
			for time.Since(began) < d && ctx.Err() == nil {
				tallies[i].count(call(ctx, 0))
			}
		})
	}
	group.Wait()
	for _, t := range tallies {
		all.add(t)
	}
	return all, ctx.Err()
}

// dialMany opens a number of connections. The returned function closes them.
func dialMany(socket string, n int) ([]*grpc.ClientConn, func() error, error) {
	var conns []*grpc.ClientConn
	end := func() (err error) {
		for _, conn := range conns {
			err = errors.Join(err, conn.Close())
		}
		return err
	}
	for range n {
		conn, err := dial(socket)
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		conns = append(conns, conn)
	}
	return conns, end, nil
}
