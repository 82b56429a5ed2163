// SPDX-License-Identifier: Apache-2.0

package server

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
)

// The limits of what the workers have to do. A stream that reaches one is not
// read any further until there is room again, so that its client waits.
const (
	// maxWaitingCalls and maxHeld are for one stream: calls, and bytes of their
	// requests and replies.
	maxWaitingCalls = 1024
	maxHeld         = 8 << 20
	// callOverhead is what a call takes beside its request and its reply, and
	// what a reply may have that no field of the request is as long as.
	callOverhead = 4 << 10
)

// exchanges is what all streams of Exchange share.
type exchanges struct {
	methods map[protowire.Number]*exchangeMethod
	workers *workers
	memory  *memory
}

// shareExchanges makes what is left to make once the options are known.
func (s *Server) shareExchanges() {
	e := &s.exchanges
	e.methods, e.workers, e.memory = s.exchangeMethods(), newWorkers(), &s.memory
}

// errLeaving ends a stream at shutdown, with a code that clients take as a reason
// to try again.
var errLeaving = status.Error(codes.Unavailable,
	"Exchange: the broker shuts down; calls without a reply were not served and can be made again")

// holding is what calls hold of the limits.
type holding struct {
	calls int
	bytes int64
	// shared is how many of the bytes are of the memory of all streams.
	shared int64
}

func (h *holding) add(more holding) {
	h.calls += more.calls
	h.bytes += more.bytes
	h.shared += more.shared
}

// exchange is one stream of Exchange.
//
// Its messages are read by one goroutine, which serves quick calls by itself,
// gives the others to the workers, and sends replies. Where it is busy with that,
// or finds the next message waiting, another one sends them, as many as there are
// when it gets to run. The goroutine of gRPC watches over them, since a call of
// gRPC that waits for the client only ends when that one returns.
type exchange struct {
	server *Server
	stream grpc.ServerStream
	ctx    context.Context // of the stream, shutdown apart
	jobs   jobs
	// arrivals bounds what its messages take before they are served.
	arrivals *arrivals

	mu sync.Mutex
	// changed tells that there may be room again, or that the stream has ended.
	changed sync.Cond
	// active counts what may still make replies: the reader while it has a
	// message, and the calls of the workers.
	active int
	// ids are those of the calls of the workers, handed how many there are, to be
	// seen without the lock.
	ids    map[uint64]*job
	handed atomic.Int64
	held   holding
	unsent unsent
	// alone is called when held is empty, where somebody waits for that.
	alone func()
	// ended tells that no more messages are served, because of reason.
	ended  bool
	reason error
	quiet  chan struct{} // closed once ended and not active

	// wake tells that there are replies for write to send; writing, that it listens.
	wake    chan struct{}
	writing bool // the reader's own

	// local, quick and broken are the reader's own: replies to the message that it
	// is busy with, the call that it serves itself, and why it cannot go on.
	local  replies
	quick  call
	broken error
	// served is when the last message was served, left how many were since replies
	// were last sent by the reader, and made how many replies there are to the one
	// that it is busy with. All are its own.
	served time.Time
	left   int
	made   int
}

// exchange serves Exchange.
func (s *Server) exchange(_ any, stream grpc.ServerStream) error {
	stream = requestStream(stream)
	x := &exchange{
		server: s, stream: stream, ctx: stream.Context(),
		ids: map[uint64]*job{}, quiet: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	x.changed.L = &x.mu
	defer context.AfterFunc(x.ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.changed.Broadcast()
	})()
	defer x.close()
	x.arrivals = openArrivals(x.ctx)
	defer x.arrivals.close()
	go x.read()
	quiet, leaving := x.quiet, s.streams.Done()
	settled := make(chan error, 1)
	watch := time.NewTicker(s.idleTime)
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
				return status.Errorf(codes.DeadlineExceeded, "Exchange: replies were not read for %s", s.idleTime)
			}
		}
	}
}

// read serves messages until there are no more, or the stream ends.
func (x *exchange) read() {
	defer func() {
		if cause := recover(); cause != nil {
			x.fail(cause)
		}
	}()
	var message keptMessage // the same for all, since what gRPC fills is allocated
	for {
		switch err := x.stream.RecvMsg(&message); {
		case errors.Is(err, io.EOF):
			x.end(nil)
			return
		case err != nil:
			x.end(err)
			return
		}
		x.arrivals.arrived()
		if !x.begin() {
			message.buffer.Free()
			x.arrivals.served()
			return
		}
		began := time.Now()
		err := x.serve(message.buffer, began)
		message.buffer.Free()
		x.arrivals.served()
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
	err := x.server.panicked("Exchange", cause)
	x.end(err)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.leave()
}

// begin tells whether messages are still served.
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

// end lets no more messages in. The first reason is that of the stream.
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
func goAway(text string) wireMessage {
	inner := protowire.AppendString(protowire.AppendTag(nil, goAwayMessage, protowire.BytesType), text)
	return wireMessage{mem.SliceBuffer(protowire.AppendBytes(protowire.AppendTag(nil, exchangeGoAway, protowire.BytesType), inner))}
}

// stuck tells whether the client does not read.
func (x *exchange) stuck() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.unsent.sending && time.Since(x.unsent.since) >= x.server.idleTime
}

// close lets go of what the stream still holds. What the workers are busy with
// follows when they are done.
func (x *exchange) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unsent.closed = true
	x.ended = true
	for _, r := range x.unsent.waiting {
		replyBuffers.Put(r.buffer)
		x.release(r.held)
	}
	x.unsent.waiting = nil
	close(x.wake)
	x.changed.Broadcast()
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
