// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// job is a call for the workers.
type job struct {
	exchange *exchange
	method   *exchangeMethod
	id       uint64
	number   protowire.Number
	request  []byte
	message  mem.Buffer // that the request is in, nil for its own
	began    time.Time
	timeout  time.Duration
	held     int64 // bytes
}

// hand gives a call to the workers, once there is room for it. It returns an error
// where the stream ends before.
func (x *exchange) hand(j *job) error {
	s := x.server
	j.held = min(s.exchanges.total, int64(2*len(j.request)+callOverhead))
	if err := x.hold(j); err != nil {
		if j.message != nil {
			j.message.Free()
		}
		return err
	}
	if !x.writing {
		x.writing = true
		go x.write()
	}
	s.metrics.Begin()
	s.exchanges.workers.submit(&x.jobs, j.run)
	return nil
}

// hold waits until the limits of the stream and of all streams have room.
func (x *exchange) hold(j *job) error {
	s := x.server
	x.mu.Lock()
	for x.full(j.held) {
		x.submitLocal()
		x.flush()
		if err := x.gone(); err != nil {
			x.mu.Unlock()
			return err
		}
		if x.full(j.held) {
			x.changed.Wait()
		}
	}
	x.mu.Unlock()
	if !s.exchanges.memory.TryAcquire(j.held) {
		x.mu.Lock()
		x.submitLocal()
		x.flush()
		x.mu.Unlock()
		if err := s.exchanges.memory.Acquire(x.ctx, j.held); err != nil {
			return status.FromContextError(err).Err()
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.active++
	x.ids[j.id] = struct{}{}
	x.held.add(holding{1, j.held})
	return nil
}

// full tells whether a call has to wait for others of its stream. The caller has
// the lock.
func (x *exchange) full(bytes int64) bool {
	return x.held.calls >= maxWaitingCalls || (x.held.calls > 0 && x.held.bytes+bytes > maxHeld)
}

// gone tells why the stream cannot go on. The caller has the lock.
func (x *exchange) gone() error {
	switch {
	case x.unsent.err != nil:
		return x.unsent.err
	case x.ctx.Err() != nil:
		return status.FromContextError(x.ctx.Err()).Err()
	case x.unsent.closed:
		return status.Error(codes.Canceled, "Exchange: the stream has ended")
	}
	return nil
}

// release gives back what sent or dropped replies held. The caller has the lock.
func (x *exchange) release(h holding) {
	if h.calls == 0 {
		return
	}
	x.held.calls -= h.calls
	x.held.bytes -= h.bytes
	x.server.exchanges.memory.Release(h.bytes)
	x.changed.Broadcast()
}

// run serves the call and queues its reply.
func (j *job) run() {
	x, s := j.exchange, j.exchange.server
	c := &call{op: j.method.op, ctx: x.ctx}
	defer func() {
		if cause := recover(); cause != nil {
			x.fail(cause)
		}
	}()
	message, err := j.serve(c)
	s.metrics.End(j.method.op, c.counters, status.Code(err), time.Since(j.began))
	r := newReply(j.id, j.number, message, err)
	made := replies{held: holding{1, j.held}}
	made.room(r.whole)
	*made.buffer = r.append(*made.buffer)
	if j.message != nil {
		j.message.Free()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.ids, j.id)
	x.put(made)
	x.leave()
	if !x.unsent.closed {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

func (j *job) serve(c *call) (proto.Message, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	if j.timeout > 0 {
		deadline := j.began.Add(j.timeout)
		if !time.Now().Before(deadline) {
			return nil, status.Errorf(codes.DeadlineExceeded, "%s: its turn did not come within the timeout of %s", c.op, j.timeout)
		}
		var cancel context.CancelFunc
		c.ctx, cancel = context.WithDeadline(c.ctx, deadline)
		defer cancel()
	}
	return j.exchange.server.run(j.method, c, j.request)
}
