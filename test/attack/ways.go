// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// target is the broker that is attacked, with the tally of the attack.
type target struct {
	socket string // of the caller a
	status string // address of the status port
	tally  *tally
}

// pauseAfterFailure is how long an attacker waits before it tries again.
const pauseAfterFailure = 20 * time.Millisecond

// together runs a function n times at once and waits for all of them. It counts errors,
// because they show what the attacker sees.
func together(ctx context.Context, t *target, n int, do func(i int) error) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { t.failed(ctx, do(i)) })
	}
	all.Wait()
}

// failed counts an error, unless the attack is over.
func (t *target) failed(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, errEnded) {
		t.tally.count(fmt.Sprintf("failures of the kind %q", cut(innermost(err).Error(), 60)), 1)
	}
}

// innermost returns the innermost wrapped error. Errors of connections wrap it with
// addresses, so that equal errors would count as different ones.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// persistently runs n attackers until the attack is over. An attacker that ends earlier begins
// again.
func persistently(ctx context.Context, t *target, n int, do func(ctx context.Context, i int) error) error {
	together(ctx, t, n, func(i int) error {
		for ctx.Err() == nil {
			once, cancel := context.WithCancel(ctx) // the end of ctx closes its connections
			began := time.Now()
			t.failed(ctx, do(once, i))
			cancel()
			if time.Since(began) < pauseAfterFailure {
				pause(ctx, pauseAfterFailure)
			}
		}
		return nil
	})
	return nil
}

// overWires returns an attack over n connections of a manner, each of which has a number. do
// attacks over one of them. When it returns, the next connection replaces that one.
func overWires(n int, m manner, do func(w *wire, i int) error) func(context.Context, *target) error {
	return func(ctx context.Context, t *target) error {
		return persistently(ctx, t, n, func(ctx context.Context, i int) error {
			w, err := newWire(ctx, t, m)
			if err != nil {
				return err
			}
			return do(w, i)
		})
	}
}

// together does the same as the function of that name, over the connection.
func (w *wire) together(n int, do func(i int) error) { together(w.ctx, w.target, n, do) }

// pause waits for a time, or until the attack is over.
func pause(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// hold waits until the connection ends or the attack is over.
func (w *wire) hold() error {
	stop := context.AfterFunc(w.ctx, func() { w.end(w.ctx.Err()) })
	defer stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.ended == nil {
		w.changed.Wait()
	}
	return nil
}

// drain waits until at most so many streams are open.
func (w *wire) drain(most int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.ended == nil && len(w.streams) > most {
		w.changed.Wait()
	}
	return w.ended
}

// plain is a codec for messages that are bytes already.
type plain struct{}

// Marshal implements encoding.CodecV2.
func (plain) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (plain) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2.
func (plain) Name() string { return "proto" }

// clients dials a socket n times. They are closed when ctx ends.
func clients(ctx context.Context, t *target, n int) ([]*grpc.ClientConn, error) {
	var all []*grpc.ClientConn
	for range n {
		conn, err := dial(t.socket)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		all = append(all, conn)
	}
	return all, nil
}

// invoke makes a call of bytes and counts how it ends, unless the attack is over.
func invoke(ctx context.Context, t *target, conn *grpc.ClientConn, method string, request []byte) error {
	var reply []byte
	err := conn.Invoke(ctx, method, request, &reply, grpc.ForceCodecV2(plain{}), grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(8<<20))
	if ctx.Err() == nil {
		t.tally.call(err)
	}
	return err
}

// repeating returns an attack of n callers who send the same message again and again. The
// message is built when the attack begins.
func repeating(connections, n int, method string, build func() []byte) func(context.Context, *target) error {
	return func(ctx context.Context, t *target) error {
		return callers(ctx, t, connections, n, method, build())
	}
}

// callers runs n callers on a number of connections until the attack is over. Each makes
// one call after another.
func callers(ctx context.Context, t *target, connections, n int, method string, message []byte) error {
	conns, err := clients(ctx, t, connections)
	if err != nil {
		return err
	}
	return persistently(ctx, t, n, func(_ context.Context, i int) error {
		// This context may end a moment after the context of the connections. A call that
		// fails in between must not count.
		failed := false // the error is counted, and the next call comes later
		for ctx.Err() == nil && !failed {
			failed = invoke(ctx, t, conns[i%connections], method, message) != nil
		}
		return nil
	})
}
