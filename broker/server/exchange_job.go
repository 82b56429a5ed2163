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
	held     holding
	// arrived is what the message holds of the memory for those of streams, where the
	// call goes without that of all streams.
	arrived int64
	// givenUp tells that the client waits no more, and end ends what the call waits
	// for, once it is served. Both belong to the lock of the exchange.
	givenUp bool
	end     context.CancelFunc
}

// giveUp ends the call if that can be. The caller has the lock of the exchange.
func (j *job) giveUp() {
	j.givenUp = true
	if j.end != nil {
		j.end()
	}
}

// begin makes the context of the call, which ends when the client gives the call
// up; false if it has.
func (j *job) begin(ctx context.Context) (context.Context, context.CancelFunc, bool) {
	ctx, cancel := context.WithCancel(ctx)
	x := j.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	j.end = cancel
	return ctx, cancel, !j.givenUp
}

// hand gives a call to the workers, once there is room for it. It returns an error
// where the stream ends before.
func (x *exchange) hand(j *job) error {
	s := x.server
	j.held = holding{calls: 1, bytes: min(s.memory.total, int64(2*len(j.request)+callOverhead))}
	if err := x.hold(j); err != nil {
		if j.message != nil {
			j.message.Free()
		}
		j.leave()
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
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.full(j.held.bytes) {
		x.arrivals.served() // since others wait for that, and this may take as long as the client likes
		x.submitLocal()
		x.flush()
		if err := x.gone(); err != nil {
			return err
		}
		if x.full(j.held.bytes) {
			x.changed.Wait()
		}
	}
	if err := x.share(j); err != nil {
		return err
	}
	x.active++
	x.ids[j.id] = j
	x.handed.Add(1)
	x.held.add(j.held)
	return nil
}

// share waits for room in what all streams share. A stream whose client has all
// replies goes without, one call at a time, so that nobody waits for ever for
// clients that do not read theirs. The caller has the lock.
func (x *exchange) share(j *job) error {
	memory := x.server.exchanges.memory
	if memory.TryAcquire(j.held.bytes) {
		j.held.shared = j.held.bytes
		return nil
	}
	if x.submitLocal(); x.unsent.sending || len(x.unsent.waiting) > 0 {
		x.arrivals.served() // since this may take as long as the client likes
		x.flush()
	}
	if x.held.calls == 0 {
		j.arrived = x.arrivals.handOver()
		return x.gone()
	}
	x.arrivals.served()
	waiting, cancel := context.WithCancel(x.ctx)
	defer cancel()
	x.alone = cancel
	x.mu.Unlock()
	err := memory.Acquire(waiting, j.held.bytes)
	x.mu.Lock()
	x.alone = nil
	if err == nil {
		j.held.shared = j.held.bytes
		return nil
	}
	return x.gone()
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
	x.held.shared -= h.shared
	if h.shared > 0 {
		x.server.exchanges.memory.Release(h.shared)
	}
	if x.held.calls == 0 && x.alone != nil {
		x.alone()
	}
	x.changed.Broadcast()
}

// run serves the call and queues its reply.
func (j *job) run() {
	x, s := j.exchange, j.exchange.server
	c := &call{op: j.method.op, ctx: x.ctx}
	defer func() {
		if cause := recover(); cause != nil {
			j.leave()
			x.fail(cause)
		}
	}()
	message, err := j.serve(c)
	s.metrics.End(j.method.op, c.counters, status.Code(err), time.Since(j.began))
	if s.tracer != nil {
		s.trace(c, true, status.Code(err), j.began)
	}
	r := newReply(j.id, j.number, message, err)
	made := replies{held: j.held}
	made.room(r.whole)
	*made.buffer = r.append(*made.buffer)
	if j.message != nil {
		j.message.Free()
	}
	j.leave()
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.ids, j.id)
	x.handed.Add(-1)
	x.put(made)
	x.leave()
	x.nudge()
}

// leave gives back what its message has held.
func (j *job) leave() {
	if j.arrived > 0 {
		j.exchange.server.exchanges.memory.arriving.Release(j.arrived)
		j.arrived = 0
	}
}

func (j *job) serve(c *call) (proto.Message, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	ctx, cancel, wanted := j.begin(c.ctx)
	defer cancel()
	if c.ctx = ctx; !wanted {
		return nil, status.Errorf(codes.Canceled, "%s: the client gave the call up before its turn came", c.op)
	}
	if j.timeout > 0 {
		deadline := j.began.Add(j.timeout)
		if !time.Now().Before(deadline) {
			return nil, status.Errorf(codes.DeadlineExceeded, "%s: its turn did not come within the timeout of %s", c.op, j.timeout)
		}
		var stop context.CancelFunc
		c.ctx, stop = context.WithDeadline(c.ctx, deadline)
		defer stop()
	}
	return j.exchange.server.run(j.method, c, j.request)
}
