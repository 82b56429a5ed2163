// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
)

// maxWaitingCalls is how many calls of a stream may wait for workers, or for their
// replies to be written. A stream that has as many is not read any further until there
// is room again, so that its client waits.
const maxWaitingCalls = 128

// errLeaving ends a stream at shutdown, with a code that clients take as a reason
// to try again.
var errLeaving = status.Error(codes.Unavailable,
	"Exchange: the broker shuts down; calls without a reply were not served and can be made again")

// exchange is one stream of Exchange.
//
// One goroutine, the reader, reads its messages, serves quick calls by itself, gives the
// others to the workers, and sends replies. While the reader is busy, or has the next
// message already, a second goroutine, the writer, sends all replies that are there. The
// goroutine of gRPC watches both, because a read or a write that waits for the client ends
// only once the goroutine of gRPC returns.
type exchange struct {
	server *streamService
	stream grpc.ServerStream
	ctx    context.Context // of the stream, shutdown apart
	queue  work.Queue
	in     *rpc.OpenedStream
	from   *flow.Caller
	// open counts who is not done with the slot of the stream: its reader, and the
	// goroutine of gRPC.
	open atomic.Int32

	mu sync.Mutex
	// changed says that there may be room again, or that the stream has ended.
	changed sync.Cond
	// active counts what may still make replies: the reader while it has a
	// message, and the calls of the workers.
	active int
	// jobs are the calls that the workers have, by id. jobCount is their number, which is
	// read without the lock.
	jobs     map[uint64]*job
	jobCount atomic.Int64
	// waiting is how many calls have no reply that gRPC has written.
	waiting int
	unsent  unsent
	// ended says that no more messages are served, because of reason.
	ended  bool
	reason error
	// finished is closed once the stream has ended and nothing is active.
	finished chan struct{}

	// wake makes the writer send.
	wake chan struct{}

	// Only the reader uses the rest.

	// writing says that there is a writer.
	writing bool
	// local has replies to the message that the reader is busy with.
	local replies
	// quick is the call that the reader serves by itself.
	quick handlers.Call
	// broken is why the reader cannot go on.
	broken error
	turn   flow.Turn
	// served is when the last message was served. left is how many messages in a row left
	// their replies to the writer. made is how many replies the present message has.
	served time.Time
	left   int
	made   int
}

// exchange serves Exchange.
func (s *streamService) exchange(_ any, stream grpc.ServerStream) error {
	in, err := s.OpenStream(stream, requests.MethodName("Exchange"), flow.MaxMessageSize)
	if err != nil {
		return err
	}
	x := &exchange{
		server: s, stream: stream, ctx: stream.Context(), in: in, from: in.Slot.Caller(),
		jobs: map[uint64]*job{}, finished: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	x.queue, x.turn = x.from.Turns.NewQueue(), x.from.NewTurn()
	x.open.Store(2)
	x.changed.L = &x.mu
	defer context.AfterFunc(x.ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.changed.Broadcast()
	})()
	defer x.close()
	go x.read()
	finished, leaving := x.finished, s.Streams.Done()
	settled := make(chan error, 1)
	watch := time.NewTicker(s.IdleTime)
	defer watch.Stop()
	for {
		select {
		case <-finished:
			finished = nil
			go func() { settled <- x.finish() }()
		case err := <-settled:
			return err
		case <-leaving:
			leaving = nil
			x.end(errLeaving)
		case <-x.ctx.Done():
			return status.FromContextError(x.ctx.Err()).Err()
		case <-watch.C:
			if x.stuck() {
				return status.Errorf(codes.DeadlineExceeded, "Exchange: replies were not read for %s", s.IdleTime)
			}
		}
	}
}

// read serves messages until there are no more, or the stream ends.
func (x *exchange) read() {
	defer x.leaveStream()
	defer func() {
		if cause := recover(); cause != nil {
			x.fail(cause)
		}
	}()
	for {
		wire, err := x.in.Next(x.ctx)
		switch {
		case errors.Is(err, io.EOF):
			x.end(nil)
			return
		case err != nil:
			x.end(err)
			return
		}
		message := newExchangeMessage(x.in.Slot, wire)
		if !x.begin() {
			message.free()
			return
		}
		began := time.Now()
		err = x.serve(message, began)
		message.free()
		x.deliver(began)
		if err != nil {
			x.end(err)
			return
		}
	}
}

// deliver sends the replies to a message, whose serving began at a time, or leaves them to
// the writer. It waits while there are many that the client has not read.
func (x *exchange) deliver(began time.Time) {
	// A message that was there when the one before it was served is seldom the last.
	// Replies to many calls are worth a message of their own.
	more := began.Sub(x.served) < promptly && x.left < maxLeft && x.made < manyReplies
	x.made = 0
	if more && !x.writing {
		x.writing = true
		go x.write()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.submitLocal()
	if more {
		x.left++
		x.wakeWriter()
	} else {
		x.left = 0
		x.flush()
	}
	x.drain()
	x.leave()
	x.served = time.Now()
}

// fail ends the stream because of a defect outside of any operation.
func (x *exchange) fail(cause any) {
	err := x.server.Panicked("Exchange", cause)
	x.end(err)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.leave()
}

// begin reports whether messages are still served.
func (x *exchange) begin() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return false
	}
	x.active++
	return true
}

// leave ends what begin began. Whoever calls it has the lock.
func (x *exchange) leave() {
	if x.active--; x.active == 0 && x.ended {
		close(x.finished)
	}
}

// end makes the stream serve no more messages. The first reason is the one that the client
// gets.
func (x *exchange) end(reason error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	x.ended, x.reason = true, reason
	if x.active == 0 {
		close(x.finished)
	}
}

// finish sends the last replies, and a GoAway where the broker shuts down.
func (x *exchange) finish() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.settle(); err != nil {
		return err
	}
	if x.reason == errLeaving { //nolint:errorlint // it is that one, and no other that is like it
		if err := x.send(goAway(status.Convert(errLeaving).Message())); err != nil {
			return err
		}
	}
	return x.reason
}

// goAway returns the last message of a broker that shuts down.
func goAway(text string) flow.EncodedMessage {
	inner := protowire.AppendString(protowire.AppendTag(nil, goAwayMessage, protowire.BytesType), text)
	return flow.EncodedMessage{mem.SliceBuffer(protowire.AppendBytes(protowire.AppendTag(nil, exchangeGoAway, protowire.BytesType), inner))}
}

// stuck reports whether the client does not read.
func (x *exchange) stuck() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.unsent.sending && time.Since(x.unsent.since) >= x.server.IdleTime
}

// leaveStream gives the slot of the stream back, once nobody needs it any more.
func (x *exchange) leaveStream() {
	if x.open.Add(-1) == 0 {
		x.in.Close()
	}
}

// close gives back what the stream still holds. The calls that workers are busy with give
// back theirs when they end.
func (x *exchange) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unsent.closed = true
	x.ended = true
	for _, r := range x.unsent.waiting {
		flow.Buffers.Put(r.buffer)
		x.release(r.held)
	}
	for sent := range x.unsent.unwritten { // which gRPC may or may not let go of
		x.release(sent.held)
	}
	x.unsent.waiting, x.unsent.unwritten = nil, nil
	close(x.wake)
	x.changed.Broadcast()
	x.leaveStream()
}

// wakeWriter makes the writer send what waits. Whoever calls it has the lock.
func (x *exchange) wakeWriter() {
	if !x.unsent.closed {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// write is the writer. It sends the replies of workers, and those that the reader leaves
// to it.
func (x *exchange) write() {
	for range x.wake {
		x.mu.Lock()
		x.flush()
		x.mu.Unlock()
	}
}
