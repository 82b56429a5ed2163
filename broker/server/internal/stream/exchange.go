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
// Its messages are read by one goroutine, which serves quick calls by itself,
// gives the others to the workers, and sends replies. Where it is busy with that,
// or finds the next message waiting, another one sends them, as many as there are
// when it gets to run. The goroutine of gRPC watches over them, since a call of
// gRPC that waits for the client only ends when that one returns.
type exchange struct {
	server *streamService
	stream grpc.ServerStream
	ctx    context.Context // of the stream, shutdown apart
	jobs   work.Queue
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
	// ids are those of the calls of the workers, handed how many there are, to be
	// seen without the lock.
	ids    map[uint64]*job
	handed atomic.Int64
	// waiting is how many calls have no reply yet that is written.
	waiting int
	unsent  unsent
	// ended says that no more messages are served, because of reason.
	ended  bool
	reason error
	quiet  chan struct{} // closed once ended and not active

	// wake says that there are replies for write to send; writing, that it listens.
	wake    chan struct{}
	writing bool // the reader's own

	// local, quick, broken and turn are the reader's own: replies to the message that
	// it is busy with, the call that it serves itself, why it cannot go on, and its turn
	// of the caller.
	local  replies
	quick  handlers.Call
	broken error
	turn   flow.Turn
	// served is when the last message was served, left how many were since replies
	// were last sent by the reader, and made how many replies there are to the one
	// that it is busy with. All are its own.
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
		ids: map[uint64]*job{}, quiet: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	x.jobs, x.turn = x.from.Turns.NewQueue(), x.from.NewTurn()
	x.open.Store(2)
	x.changed.L = &x.mu
	defer context.AfterFunc(x.ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.changed.Broadcast()
	})()
	defer x.close()
	go x.read()
	quiet, leaving := x.quiet, s.Streams.Done()
	settled := make(chan error, 1)
	watch := time.NewTicker(s.IdleTime)
	defer watch.Stop()
	for {
		select {
		case <-quiet:
			quiet = nil
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

// deliver has the replies to a message sent, which began to be served then. It
// waits while there are many that the client has not read.
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
		x.nudge()
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

// leave is the end of what begin began. The caller has the lock.
func (x *exchange) leave() {
	if x.active--; x.active == 0 && x.ended {
		close(x.quiet)
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
		close(x.quiet)
	}
}

// finish sends the last replies, and says good-bye where the broker leaves.
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

// goAway is the last message of a broker that shuts down.
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

// close lets go of what the stream still holds. What the workers are busy with
// follows when they are done.
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

// nudge has write send what waits. The caller has the lock.
func (x *exchange) nudge() {
	if !x.unsent.closed {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// write sends replies while the reader does not: those of workers, and those that
// the reader has left.
func (x *exchange) write() {
	for range x.wake {
		x.mu.Lock()
		x.flush()
		x.mu.Unlock()
	}
}
