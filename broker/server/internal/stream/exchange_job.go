// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
)

// job is a call for the workers.
type job struct {
	exchange *exchange
	method   *rpc.ExchangedMethod
	id       uint64
	number   protowire.Number
	request  []byte
	began    time.Time
	timeout  time.Duration
	held     holding
	// mayWait reports whether the call has its own goroutine, see [handlers.Call].
	mayWait bool
	// givenUp reports whether the client does not wait any more. end cancels the context of the
	// call. It is nil before a worker serves the call. The mutex of the exchange guards both.
	givenUp bool
	end     context.CancelFunc
}

// giveUp cancels the call. The caller has locked the mutex of the exchange.
func (j *job) giveUp() {
	j.givenUp = true
	if j.end != nil {
		j.end()
	}
}

// begin returns the context of the call, which ends when the client gives up the call. It
// reports false if the client has given up the call already.
func (j *job) begin(ctx context.Context) (context.Context, context.CancelFunc, bool) {
	ctx, cancel := context.WithCancel(ctx)
	x := j.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	j.end = cancel
	return ctx, cancel, !j.givenUp
}

// newJob returns the job of a call, which keeps the message that has the call.
func (x *exchange) newJob(method *rpc.ExchangedMethod, call *exchangeCall, began time.Time, message *exchangeMessage) *job {
	message.ref()
	return &job{
		exchange: x, method: method, id: call.id, number: call.number, began: began, timeout: call.timeout,
		request: call.request, held: holding{calls: 1, messages: []*exchangeMessage{message}},
	}
}

// submit gives a call to the workers once there is room for it. A call that has begun and waits
// for a key manager gets a goroutine of its own. submit returns an error if the stream ends
// before.
func (x *exchange) submit(j *job, waits bool) error {
	s := x.server
	if err := x.awaitRoom(j); err != nil {
		j.held.free()
		return err
	}
	if !x.writing {
		x.writing = true
		go x.write()
	}
	if waits {
		j.mayWait = true
		go j.run()
		return nil
	}
	s.Metrics.Begin()
	s.Workers.Submit(&x.queue, j.run)
	return nil
}

// awaitRoom waits until the stream has room for a call.
func (x *exchange) awaitRoom(j *job) error {
	x.turn.End()
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.waiting >= maxWaitingCalls {
		x.queueQuick()
		x.flush()
		if err := x.endError(); err != nil {
			return err
		}
		if x.waiting >= maxWaitingCalls {
			x.changed.Wait()
		}
	}
	x.active++
	x.jobs[j.id] = j
	x.jobCount.Add(1)
	x.waiting++
	return nil
}

// endError returns the error that ends the stream, or nil. The caller has locked x.mu.
func (x *exchange) endError() error {
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

// release releases what written or dropped replies held. The caller has locked x.mu.
func (x *exchange) release(h holding) {
	if h.calls == 0 {
		return
	}
	x.waiting -= h.calls
	h.free()
	x.changed.Broadcast()
}

// run serves the call and queues its reply.
func (j *job) run() {
	x, s := j.exchange, j.exchange.server
	c := &handlers.Call{Operation: j.method.Operation, Context: x.ctx, MayWait: j.mayWait, Batched: true, RequestSize: len(j.request)}
	defer c.Overwrite()
	defer func() {
		if cause := recover(); cause != nil {
			x.fail(cause)
			x.mu.Lock()
			x.release(j.held)
			x.mu.Unlock()
		}
	}()
	message, err := j.serve(c)
	if errors.Is(err, handlers.ErrWaits) {
		c.Free()
		j.mayWait = true
		go j.run() // the worker goes on with another call
		return
	}
	err = s.Record(c, err)
	s.Ended(c, status.Code(err), j.began, time.Now())
	r := newReply(j.id, j.number, message, c.ReplySize, err)
	if !j.held.takeReplyMemory(x.from, len(j.request), r.whole) {
		r = newReply(j.id, j.number, nil, 0, x.from.NoReplyMemory(c.Operation, r.whole))
	}
	made := replies{held: j.held}
	made.room(r.whole)
	*made.buffer = r.append(*made.buffer)
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.jobs, j.id)
	x.jobCount.Add(-1)
	x.put(made)
	x.leave()
	x.wakeWriter()
}

func (j *job) serve(c *handlers.Call) (proto.Message, error) {
	if err := c.Context.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	ctx, cancel, wanted := j.begin(c.Context)
	defer cancel()
	if c.Context = ctx; !wanted {
		return nil, status.Errorf(codes.Canceled, "%s: the client canceled the call before a worker was free", c.Operation)
	}
	if j.timeout > 0 {
		deadline := j.began.Add(j.timeout)
		if !time.Now().Before(deadline) {
			return nil, status.Errorf(codes.DeadlineExceeded, "%s: no worker was free within the timeout of %s", c.Operation, j.timeout)
		}
		var stop context.CancelFunc
		c.Context, stop = context.WithDeadline(c.Context, deadline)
		defer stop()
	}
	reply, err := j.exchange.server.run(j.method, c, j.request)
	if errors.Is(err, handlers.ErrWaits) {
		return nil, err
	}
	return reply, j.exchange.server.Record(c, err) // as long as the context of the call has not ended
}
