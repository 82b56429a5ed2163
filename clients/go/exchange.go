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
	// maxExchanged is the size in bytes of the largest request that goes over the
	// stream. It would hold up the others, and gain nothing.
	maxExchanged = 16 << 10
	// callFrame is at least what a call takes beside its request, in bytes.
	callFrame = 64
)

var exchangeDescription = grpc.StreamDesc{StreamName: "Exchange", ClientStreams: true, ServerStreams: true}

// exchanges is the stream of a client, and the one after it.
type exchanges struct {
	current atomic.Pointer[exchange]
	mu      sync.Mutex // for whoever makes the next one
	running sync.WaitGroup
	// slots bounds the calls under way.
	slots chan struct{}
}

// exchange is one stream that many calls share.
//
// A call that is alone sends its request itself. Otherwise a goroutine sends what
// the callers have left, in as few messages as it can.
type exchange struct {
	client *Client
	cancel context.CancelFunc

	mu     sync.Mutex
	stream grpc.ClientStream // nil until it is there
	// waiting has the encoded calls that were not sent yet.
	waiting []*[]byte
	sending bool
	ended   bool
	lastID  uint64
	pending map[uint64]*call
	// unanswered counts the calls that a reply will come to; forgotten those among
	// them that nobody waits for any more, which still have their slots.
	unanswered, forgotten int

	wake chan struct{} // for the goroutine that sends
}

// exchange makes a call on the stream; served is false where it has to be made
// without.
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
			// The broker still has the call, and the call its place.
			return ended(p.op, p.profile, ctx.Err()), true
		}
		<-p.done
	}
	<-c.exchanges.slots
	return p.outcome, !p.again
}

// nextExchange puts a call on the stream that follows one that has ended. It makes
// that one, with the call on it, unless somebody else has.
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

// add puts a call on the stream; false if that has ended.
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
		// It never has to wait for the broker: nothing else is on its way there.
		x.sendOne()
	}
	if x.sendable() {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// giveUp tells the broker that nobody waits for a call any more. One that does not
// know how serves the call. The caller has the lock.
func (x *exchange) giveUp(id uint64) {
	if x.ended {
		return
	}
	b := x.room(callFrame)
	*b = appendUint(*b, exchangeGivenUp, id)
	if x.sendable() {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// room returns the last of the buffers that are to be sent, with room for so many
// bytes. The caller has the lock.
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

// frame appends a call to what is to be sent.
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

// sendable reports whether there is something to send and nobody who does. The
// caller has the lock.
func (x *exchange) sendable() bool {
	return !x.sending && !x.ended && x.stream != nil && len(x.waiting) > 0
}

// sendOne sends one message. The caller has the lock, which is free meanwhile.
func (x *exchange) sendOne() {
	buffer := mem.NewBuffer(x.waiting[0], buffers)
	n := copy(x.waiting, x.waiting[1:])
	x.waiting[n] = nil
	x.waiting = x.waiting[:n]
	x.sending = true
	x.mu.Unlock()
	// Where it fails, the reason is what is received.
	_ = x.stream.SendMsg(&outgoing{buffer: buffer})
	buffer.Free()
	x.mu.Lock()
	x.sending = false
}

// send sends what callers have left, until the stream ends.
func (x *exchange) send() {
	for range x.wake {
		// Callers that are about to leave theirs come first.
		runtime.Gosched()
		x.mu.Lock()
		for x.sendable() {
			x.sendOne()
		}
		x.mu.Unlock()
	}
}

// forget takes a call back; false if it has its outcome already. The broker knows
// of deadlines by itself, and is told of anything else.
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

// receive opens the stream and hands out the replies until it ends.
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

// replies hands out replies. It returns why there are no more.
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

// errGoAway is the end of a stream whose broker said that it shuts down.
var errGoAway = status.Error(codes.Unavailable, "the broker shuts down")

// take hands out the replies of one message.
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

// answer hands out one reply. The caller has the lock.
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
		// The broker has the stream, but not for this operation.
		p.again = p.outcome.code == CodeUnimplemented
	default:
		return fmt.Errorf("the reply to %s has the number %d, expected %d", p.op.name, result, p.op.number)
	}
	delete(x.pending, id)
	p.done <- struct{}{}
	return nil
}

// refused reads a status.
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

// end gives all calls that are left their outcome.
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

// outcome is that of a call without a reply on a stream that has ended. The stream
// is made again, unless it ended for what may be the fault of one of its calls:
// then each is made without it, and gets an answer of its own.
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
