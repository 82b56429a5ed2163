// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	exchangeMethod = "/cryptobroker.stream.v1.StreamService/Exchange"
	// maxExchanged is the size in bytes of the largest request that is sent on the stream.
	// Larger requests would delay others, and gain nothing.
	maxExchanged = 16 << 10
	// callFrame is the maximum size in bytes of a call without its request.
	callFrame = 64
)

var exchangeDescription = grpc.StreamDesc{StreamName: "Exchange", ClientStreams: true, ServerStreams: true}

// exchanges is the current stream of a client. A new stream replaces a stream that has ended.
type exchanges struct {
	current atomic.Pointer[exchange]
	mu      sync.Mutex // locked while the next stream is made
	running sync.WaitGroup
	// slots has an element for each call on a stream, at most maxInFlight.
	slots chan struct{}
}

// exchange is one stream that many calls share.
//
// If no other call waits for a reply, a call sends its request itself. Otherwise a goroutine
// sends the waiting requests in as few messages as possible.
type exchange struct {
	client *Client
	cancel context.CancelFunc

	mu     sync.Mutex
	stream grpc.ClientStream // nil until the stream is open
	// waiting has the encoded calls that were not sent yet.
	waiting []*[]byte
	sending bool
	ended   bool
	lastID  uint64
	pending map[uint64]*call
	// unanswered is the number of calls that have no reply yet. forgotten is the number of those
	// calls for which nobody waits any more. They still have their slots.
	unanswered, forgotten int

	wake chan struct{} // wakes the goroutine that sends
}

// exchange makes a call on the stream. served is false if the call has to be made without the
// stream.
func (c *Client) exchange(ctx context.Context, p *call) (result failure, served bool) {
	if n := c.withoutExchange.Load(); n != 0 && n == c.connections.Load() {
		return failure{}, false
	}
	select {
	case c.exchanges.slots <- struct{}{}:
	default:
		select {
		case c.exchanges.slots <- struct{}{}:
		case <-ctx.Done():
			return ended(p.op, p.profile, ctx.Err()), true
		}
	}
	x := c.exchanges.current.Load()
	for added := x != nil && x.add(ctx, p); !added; {
		x, added = c.nextExchange(ctx, x, p)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		if x.forget(p, ctx.Err()) {
			// The broker still serves the call, so the call keeps its slot.
			return ended(p.op, p.profile, ctx.Err()), true
		}
		<-p.done
	}
	<-c.exchanges.slots
	return p.outcome, !p.again
}

// nextExchange puts a call on the stream after a stream that has ended. It makes the next
// stream unless another call has made it.
func (c *Client) nextExchange(ctx context.Context, after *exchange, p *call) (x *exchange, added bool) {
	c.exchanges.mu.Lock()
	defer c.exchanges.mu.Unlock()
	if x := c.exchanges.current.Load(); x != after {
		return x, x.add(ctx, p)
	}
	x = &exchange{client: c, pending: map[uint64]*call{}, wake: make(chan struct{}, 1)}
	streamCtx, cancel := context.WithCancel(context.Background())
	x.cancel = cancel
	added = x.add(ctx, p)
	c.exchanges.running.Go(func() { x.receive(streamCtx) })
	c.exchanges.current.Store(x)
	return x, added
}

// add puts a call on the stream. It reports false if the stream has ended.
func (x *exchange) add(ctx context.Context, p *call) bool {
	var timeout uint32
	if deadline, ok := ctx.Deadline(); ok {
		timeout = uint32(min(max(time.Until(deadline).Milliseconds(), 1), math.MaxUint32))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return false
	}
	x.lastID++
	p.id, p.outcome, p.again = x.lastID, failure{}, false
	x.pending[p.id] = p
	x.unanswered++
	x.frame(p, timeout)
	if x.unanswered == 1 && x.sendable() {
		// Sending does not block, because no other call waits for the broker.
		x.sendOne()
	}
	x.wakeSender()
	return true
}

// wakeSender makes the goroutine that sends send what waits. The caller of wakeSender has locked
// x.mu.
func (x *exchange) wakeSender() {
	if x.sendable() {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// giveUp tells the broker that nobody waits for a call any more. A broker that does not have
// this field serves the call. The caller of giveUp has locked x.mu.
func (x *exchange) giveUp(id uint64) {
	if x.ended {
		return
	}
	b := x.room(callFrame)
	*b = appendUint(*b, exchangeGivenUp, id)
	x.wakeSender()
}

// room returns the last waiting buffer if it has room for need bytes, or else a new one.
// The caller of room has locked x.mu.
func (x *exchange) room(need int) *[]byte {
	n := len(x.waiting)
	if n == 0 || cap(*x.waiting[n-1])-len(*x.waiting[n-1]) < need {
		size := smallBuffer
		if n > 0 || need > smallBuffer {
			size = batchBuffer
		}
		buffer := buffers.Get(size)
		*buffer = (*buffer)[:0]
		x.waiting = append(x.waiting, buffer)
		n++
	}
	return x.waiting[n-1]
}

// frame appends an encoded call to the waiting buffers.
func (x *exchange) frame(p *call, timeout uint32) {
	request := *p.request
	body := protowire.SizeTag(callID) + protowire.SizeVarint(p.id) + protowire.SizeTag(p.op.number) + protowire.SizeBytes(len(request))
	if timeout > 0 {
		body += protowire.SizeTag(callTimeout) + protowire.SizeVarint(uint64(timeout))
	}
	buffer := x.room(body + callFrame)
	b := *buffer
	b = protowire.AppendTag(b, exchangeCalls, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(body))
	b = appendUint(b, callID, p.id)
	if timeout > 0 {
		b = appendUint(b, callTimeout, uint64(timeout))
	}
	b = protowire.AppendTag(b, p.op.number, protowire.BytesType)
	*buffer = protowire.AppendBytes(b, request)
}

// sendable reports whether there is something to send and nobody sends. The caller of sendable
// has locked x.mu.
func (x *exchange) sendable() bool {
	return !x.sending && !x.ended && x.stream != nil && len(x.waiting) > 0
}

// sendOne sends one message. The caller of sendOne has locked x.mu. sendOne unlocks it while it
// sends.
func (x *exchange) sendOne() {
	buffer := mem.NewBuffer(x.waiting[0], buffers)
	n := copy(x.waiting, x.waiting[1:])
	x.waiting[n] = nil
	x.waiting = x.waiting[:n]
	x.sending = true
	x.mu.Unlock()
	// The error is ignored, because RecvMsg returns the reason.
	_ = x.stream.SendMsg(&outgoing{buffer: buffer})
	buffer.Free()
	x.mu.Lock()
	x.sending = false
}

// send sends waiting calls until the stream ends.
func (x *exchange) send() {
	for range x.wake {
		// Other goroutines may add their calls first, so that one message has more calls.
		runtime.Gosched()
		x.mu.Lock()
		for x.sendable() {
			x.sendOne()
		}
		x.mu.Unlock()
	}
}

// forget removes a call whose context has ended. It reports false if the call has its outcome
// already. It tells the broker, unless the deadline of the call has passed, which the broker
// knows.
func (x *exchange) forget(p *call, why error) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pending[p.id] != p {
		return false
	}
	delete(x.pending, p.id)
	x.forgotten++
	if !errors.Is(why, context.DeadlineExceeded) {
		x.giveUp(p.id)
	}
	return true
}

// receive opens the stream, and gives replies to their calls until the stream ends.
func (x *exchange) receive(ctx context.Context) {
	defer x.cancel()
	stream, err := x.client.conn.NewStream(ctx, &exchangeDescription, exchangeMethod)
	if err != nil {
		x.end(err)
		return
	}
	x.mu.Lock()
	x.stream = stream
	x.wake <- struct{}{}
	x.mu.Unlock()
	x.client.exchanges.running.Go(x.send)
	err = x.replies(stream)
	if isUnimplemented(err) {
		x.client.withoutExchange.Store(connectionOf(stream.Context()))
	}
	x.end(err)
}

// replies gives replies to their calls. It returns why there are no more replies.
func (x *exchange) replies(stream grpc.ClientStream) error {
	for {
		var message incoming
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		err := x.take(message.buffer.ReadOnlyData())
		message.free()
		if err != nil {
			return err
		}
	}
}

// errGoAway ends a stream whose broker has sent GoAway.
var errGoAway = status.Error(codes.Unavailable, "the broker shuts down")

// take gives the replies of one message to their calls.
func (x *exchange) take(message []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := fields{wire: message}
	for f.next() {
		switch f.number {
		case exchangeReplies:
			if err := x.answer(f.bytes); err != nil {
				return err
			}
		case exchangeGoAway:
			return errGoAway
		}
	}
	return f.err
}

// answer gives one reply to its call. The caller of answer has locked x.mu.
func (x *exchange) answer(reply []byte) error {
	var id uint64
	var result number
	var body []byte
	f := fields{wire: reply}
	for f.next() {
		if f.number == replyID {
			id = f.uint
		} else {
			result, body = f.number, f.bytes
		}
	}
	if f.err != nil {
		return f.err
	}
	x.unanswered--
	p := x.pending[id]
	if p == nil {
		if x.forgotten > 0 {
			x.forgotten--
			<-x.client.exchanges.slots
		}
		return nil
	}
	switch result {
	case p.op.number:
		p.kept = append(p.kept[:0], body...)
		p.reply = p.kept
	case replyStatus:
		var err error
		if p.outcome, err = x.refused(p, body); err != nil {
			return err
		}
		// The broker may have the operation as a unary call only.
		p.again = p.outcome.code == CodeUnimplemented
	default:
		return fmt.Errorf("the reply to %s has the number %d, expected %d", p.op.name, result, p.op.number)
	}
	delete(x.pending, id)
	p.done <- struct{}{}
	return nil
}

// refused returns the failure that is encoded as a status.
func (x *exchange) refused(p *call, body []byte) (failure, error) {
	var code Code
	var message string
	f := fields{wire: body}
	for f.next() {
		switch f.number {
		case statusCode:
			code = Code(f.uint)
		case messageOfStatus:
			message = string(f.bytes)
		}
	}
	if code == 0 {
		code = CodeUnknown
	}
	return x.client.refused(p.op, p.profile, code, message), f.err
}

// end ends the stream, and gives all calls that are left their outcome.
func (x *exchange) end(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	close(x.wake)
	for _, buffer := range x.waiting {
		buffers.Put(buffer)
	}
	x.waiting = nil
	for _, p := range x.pending {
		p.outcome, p.again = x.outcome(p, err)
		p.done <- struct{}{}
	}
	x.pending = nil
	for ; x.forgotten > 0; x.forgotten-- {
		<-x.client.exchanges.slots
	}
}

// outcome returns the outcome of a call without a reply on a stream that has ended. If one of
// the calls may have caused the end of the stream, again is true: each call is then made as a
// unary call, and gets its own answer.
func (x *exchange) outcome(p *call, err error) (result failure, again bool) {
	switch code := status.Code(err); {
	case x.client.stopped():
		return failure{code: CodeCanceled, message: said(p.op, p.profile, "the client was closed"), cause: ErrClosed}, false
	case errors.Is(err, io.EOF), code == codes.Unavailable, code == codes.DeadlineExceeded, code == codes.Canceled:
		return failure{code: CodeUnavailable, message: said(p.op, p.profile, "%s (socket %s)", status.Convert(err).Message(), x.client.socket)}, false
	default:
		return failure{}, true
	}
}
