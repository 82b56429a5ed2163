// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
)

// The numbers of the fields of ExchangeResponse, Reply, Status and GoAway.
const (
	exchangeReplies, exchangeGoAway protowire.Number = 1, 2
	replyID, replyStatus            protowire.Number = 1, 2
	statusCode, statusMessage       protowire.Number = 1, 2
	goAwayMessage                   protowire.Number = 1
)

const (
	// maxRepliesSize is the largest size in bytes of a message with several replies.
	maxRepliesSize = 64 << 10
	// maxUnsent is the maximum number of bytes of replies that may wait. The reader serves no
	// more calls while there are more.
	maxUnsent = 64 << 10
	// promptTime is the longest time between two messages for which the reader assumes that the
	// second had already arrived. Then it leaves the replies to the writer.
	promptTime = 10 * time.Microsecond
	// maxLeft is the maximum number of consecutive messages whose replies the reader leaves to
	// the writer. So the client gets some replies while it sends.
	maxLeft = 16
	// manyReplies is the smallest number of replies that the reader sends itself.
	manyReplies = 4
)

// replies is a buffer of complete replies.
type replies struct {
	buffer *[]byte // nil while there are none
	// held has the resources that the calls with these replies hold until the replies are
	// written.
	held holding
}

// room reports whether the buffer has room for size bytes. It takes a buffer if there is
// none.
func (r *replies) room(size int) bool {
	if r.buffer == nil {
		r.buffer = buffers.Pool.Get(max(size, buffers.SharedSize))
		*r.buffer = (*r.buffer)[:0]
	}
	return cap(*r.buffer)-len(*r.buffer) >= size
}

// sizeOfReply returns the size in bytes of the message Reply to the call id. The response in
// it has size bytes, and number is its field.
func sizeOfReply(id uint64, number protowire.Number, size int) int {
	return protowire.SizeTag(replyID) + protowire.SizeVarint(id) + protowire.SizeTag(number) + protowire.SizeBytes(size)
}

// encodedReply is a reply whose size is known.
type encodedReply struct {
	id      uint64
	number  protowire.Number
	message proto.Message // nil for a status
	code    codes.Code
	text    string
	// inner, body and whole are sizes in bytes: of the response or status, of the message
	// Reply, and of the field with the message Reply.
	inner, body, whole int
}

// newReply returns the reply to a call. It has the message, for which [proto.Size] returned size
// last, or the status of err.
func newReply(id uint64, number protowire.Number, message proto.Message, size int, err error) encodedReply {
	r := encodedReply{id: id, number: number, message: message, inner: size}
	if err != nil {
		st := status.Convert(err)
		r.number, r.message, r.code, r.text = replyStatus, nil, st.Code(), st.Message()
		r.inner = protowire.SizeTag(statusCode) + protowire.SizeVarint(uint64(r.code)) +
			protowire.SizeTag(statusMessage) + protowire.SizeBytes(len(r.text))
	}
	r.body = sizeOfReply(id, r.number, r.inner)
	r.whole = protowire.SizeTag(exchangeReplies) + protowire.SizeBytes(r.body)
	return r
}

// append appends the field with the reply to b. It cannot fail, because all strings of a
// reply are valid UTF-8.
func (r *encodedReply) append(b []byte) []byte {
	b = protowire.AppendTag(b, exchangeReplies, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(r.body))
	b = protowire.AppendTag(b, replyID, protowire.VarintType)
	b = protowire.AppendVarint(b, r.id)
	b = protowire.AppendTag(b, r.number, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(r.inner))
	if r.message == nil {
		b = protowire.AppendTag(b, statusCode, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(r.code))
		b = protowire.AppendTag(b, statusMessage, protowire.BytesType)
		return protowire.AppendString(b, r.text)
	}
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, r.message)
	if err != nil {
		panic(err)
	}
	return b
}

// unsent are the replies of a stream that wait to be sent. The mutex of the stream guards
// it.
type unsent struct {
	waiting []replies
	bytes   int // the size of waiting
	// unwritten are replies that gRPC has not written yet and that hold something.
	unwritten map[*sentReplies]struct{}
	// sending reports whether a goroutine is sending a message, and since is the time at which it
	// began.
	sending bool
	since   time.Time
	err     error // why sending failed
	closed  bool  // whether nobody sends any more
}

// put queues replies. It copies them into the last waiting buffer if that has room.
func (x *exchange) put(r replies) {
	if x.unsent.closed || x.unsent.err != nil {
		buffers.Pool.Put(r.buffer)
		x.release(r.held)
		return
	}
	size := len(*r.buffer)
	x.unsent.bytes += size
	if n := len(x.unsent.waiting); n > 0 {
		if last := &x.unsent.waiting[n-1]; cap(*last.buffer)-len(*last.buffer) >= size {
			*last.buffer = append(*last.buffer, *r.buffer...)
			last.held.add(r.held)
			buffers.Pool.Put(r.buffer)
			return
		}
	}
	x.unsent.waiting = append(x.unsent.waiting, r)
}

// flush sends all replies that wait, unless another goroutine sends. The caller has locked x.mu,
// which flush unlocks while it sends.
func (x *exchange) flush() {
	u := &x.unsent
	for !u.sending && !u.closed && u.err == nil && len(u.waiting) > 0 {
		message := make(flow.EncodedMessage, 0, min(len(u.waiting), 8))
		size, n := 0, 0
		for _, r := range u.waiting {
			if n > 0 && size+len(*r.buffer) > maxRepliesSize {
				break
			}
			size += len(*r.buffer)
			message = append(message, mem.NewBuffer(r.buffer, x.sent(r.held)))
			n++
		}
		clear(u.waiting[:n])
		u.waiting = append(u.waiting[:0], u.waiting[n:]...)
		u.err = x.send(message)
		u.bytes -= size
	}
}

// send sends one message. The caller has locked x.mu, which send unlocks while it sends. No other
// goroutine may be sending.
func (x *exchange) send(message flow.EncodedMessage) error {
	x.unsent.sending, x.unsent.since = true, time.Now()
	x.mu.Unlock()
	err := x.stream.SendMsg(message)
	x.mu.Lock()
	x.unsent.sending = false
	x.changed.Broadcast()
	return err
}

// drain sends replies, and waits for another goroutine that sends, until at most maxUnsent bytes
// wait. The caller has locked x.mu.
func (x *exchange) drain() {
	for x.unsent.bytes > maxUnsent && x.endError() == nil {
		if x.flush(); x.unsent.sending {
			x.changed.Wait()
		}
	}
}

// sendAll sends all replies that wait, and returns when none is left. The caller has locked x.mu.
func (x *exchange) sendAll() error {
	for x.unsent.err == nil && (x.unsent.sending || len(x.unsent.waiting) > 0) {
		if x.flush(); x.unsent.sending {
			x.changed.Wait()
		}
	}
	return x.unsent.err
}
