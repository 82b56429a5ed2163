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

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
)

// maxWaitingCalls is the maximum number of calls of a stream that may wait for workers, or for
// their replies to be written. The broker reads no more from a stream with that many calls, so
// its client waits.
const maxWaitingCalls = 128

// errLeaving ends a stream at shutdown. Clients try again after its code.
var errLeaving = status.Error(codes.Unavailable,
	"Exchange: the broker shuts down; calls without a reply were not served and can be made again")

// exchange is one stream of Exchange.
//
// One goroutine, the reader, reads the messages, serves quick calls, gives slow calls to the
// workers, and sends replies. While the reader is busy, or already has the next message, a second
// goroutine, the writer, sends the replies that are ready. The goroutine of gRPC waits for both,
// because a read or a write that waits for the client ends only when that goroutine returns.
type exchange struct {
	server *streamService
	stream grpc.ServerStream
	ctx    context.Context // the context of the stream; it does not end at shutdown
	queue  work.Queue
	in     *rpc.OpenedStream
	from   *flow.Caller
	// open is the number of goroutines that still use the slot of the stream: the reader, and the
	// goroutine of gRPC.
	open atomic.Int32

	mu sync.Mutex
	// changed is signaled when there may be room for more calls and replies, and when the
	// stream ends.
	changed sync.Cond
	// active is the number of goroutines that may still make replies: the reader while it has a
	// message, and each call of the workers.
	active int
	// jobs are the calls that the workers have, by id. jobCount is their number. Readers of
	// jobCount do not need mu.
	jobs     map[uint64]*job
	jobCount atomic.Int64
	// waiting is the number of calls of workers whose replies gRPC has not written.
	waiting int
	unsent  unsent
	// ended reports whether the stream serves no more messages. reason is the error that ended
	// it, or nil after the end of the requests.
	ended  bool
	reason error
	// finished is closed once the stream has ended and nothing is active.
	finished chan struct{}

	// wake makes the writer send.
	wake chan struct{}

	// Only the reader uses the fields below.

	// writing reports whether the writer has been started.
	writing bool
	// quickReplies has the replies to quick calls of the current message.
	quickReplies replies
	// quick is the quick call that the reader serves now.
	quick handlers.Call
	// broken is the error that stops the reader, or nil.
	broken error
	turn   flow.Turn
	// served is the time at which the last message was served. left is the number of consecutive
	// messages whose replies the writer sent. made is the number of replies of the current
	// message.
	served time.Time
	left   int
	made   int
}

// exchange serves Exchange.
func (s *streamService) exchange(_ any, stream grpc.ServerStream) error {
	in, err := s.OpenStream(stream, requests.MethodName("Exchange"), limits.MaxMessageSize)
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

// deliver sends the replies to a message, or leaves them to the writer. It waits while there
// are too many replies that the client has not read. began is when the broker began to serve
// the message.
func (x *exchange) deliver(began time.Time) {
	// If this message came right after the last one, more will probably follow. The writer then
	// sends the replies to several messages together. If a message has many calls, their replies
	// are sent at once.
	more := began.Sub(x.served) < promptTime && x.left < maxLeft && x.made < manyReplies
	x.made = 0
	if more && !x.writing {
		x.writing = true
		go x.write()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queueQuick()
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

// begin reports whether the stream still serves messages. If it does, begin counts the
// reader as active until leave.
func (x *exchange) begin() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return false
	}
	x.active++
	return true
}

// leave subtracts one from active. The caller has locked x.mu.
func (x *exchange) leave() {
	if x.active--; x.active == 0 && x.ended {
		close(x.finished)
	}
}

// end makes the stream serve no more messages. The client gets the first reason.
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

// finish sends the last replies, and GoAway if the broker shuts down. It returns why the
// stream ended.
func (x *exchange) finish() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.sendAll(); err != nil {
		return err
	}
	if x.reason == errLeaving { //nolint:errorlint // a status error equals others with the same text
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

// leaveStream releases the slot of the stream if no other goroutine uses it any more.
func (x *exchange) leaveStream() {
	if x.open.Add(-1) == 0 {
		x.in.Close()
	}
}

// close releases what the stream still holds. Calls that workers are serving release what they
// hold when they end.
func (x *exchange) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unsent.closed = true
	x.ended = true
	for _, r := range x.unsent.waiting {
		buffers.Pool.Put(r.buffer)
		x.release(r.held)
	}
	for sent := range x.unsent.unwritten { // gRPC may not free these buffers
		x.release(sent.held)
	}
	x.unsent.waiting, x.unsent.unwritten = nil, nil
	close(x.wake)
	x.changed.Broadcast()
	x.leaveStream()
}

// wakeWriter makes the writer send the replies that wait. The caller has locked x.mu.
func (x *exchange) wakeWriter() {
	if !x.unsent.closed {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// write is the writer. It sends the replies of workers, and the replies that the reader
// leaves to it.
func (x *exchange) write() {
	for range x.wake {
		x.mu.Lock()
		x.flush()
		x.mu.Unlock()
	}
}
