// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

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
	// maxRepliesSize is the size in bytes above which no more replies go into a
	// message.
	maxRepliesSize = 64 << 10
	// maxUnsent is how many bytes of replies may wait before the next call is
	// served.
	maxUnsent = 64 << 10
	// promptly is how soon after a message was served the next one comes where it
	// was there already, and maxLeft how many messages in a row the reader leaves
	// the replies to, so that the client gets the first of them before the last is
	// served. manyReplies is how many are not left.
	promptly    = 10 * time.Microsecond
	maxLeft     = 16
	manyReplies = 4
)

// replies is a buffer of whole replies.
type replies struct {
	buffer *[]byte // nil while there are none
	// held is what the calls with these replies hold until they are written.
	held holding
}

// room makes sure that size bytes fit in; it returns false where they do not.
func (r *replies) room(size int) bool {
	if r.buffer == nil {
		r.buffer = flow.Buffers.Get(max(size, flow.SharedBuffer))
		*r.buffer = (*r.buffer)[:0]
	}
	return cap(*r.buffer)-len(*r.buffer) >= size
}

// sizeOfReply returns the size of the reply to call id with a message of size bytes, less
// the field that it is in.
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
	// inner, body and whole are the sizes of the message, of the reply and of the
	// field with the reply, in bytes.
	inner, body, whole int
}

// newReply is the reply to a call: the message, or the status of an error.
func newReply(id uint64, number protowire.Number, message proto.Message, err error) encodedReply {
	r := encodedReply{id: id, number: number, message: message}
	if err != nil {
		st := status.Convert(err)
		r.number, r.message, r.code, r.text = replyStatus, nil, st.Code(), st.Message()
		r.inner = protowire.SizeTag(statusCode) + protowire.SizeVarint(uint64(r.code)) +
			protowire.SizeTag(statusMessage) + protowire.SizeBytes(len(r.text))
	} else {
		r.inner = proto.Size(message)
	}
	r.body = sizeOfReply(id, r.number, r.inner)
	r.whole = protowire.SizeTag(exchangeReplies) + protowire.SizeBytes(r.body)
	return r
}

// append appends the field with the reply. It cannot fail: what was read as UTF-8
// is written as such.
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

// unsent are the replies of a stream that wait to be sent. The stream's lock
// guards it.
type unsent struct {
	waiting []replies
	bytes   int
	// unwritten are replies that gRPC has and that hold something.
	unwritten map[*sentReplies]struct{}
	// sending says that somebody is about to send all that waits, since when.
	sending bool
	since   time.Time
	err     error // of the stream, once sending failed
	closed  bool  // nobody sends any more
}

// put queues replies, into a buffer that waits already where they fit in.
func (x *exchange) put(r replies) {
	if x.unsent.closed || x.unsent.err != nil {
		flow.Buffers.Put(r.buffer)
		x.release(r.held)
		return
	}
	size := len(*r.buffer)
	x.unsent.bytes += size
	if n := len(x.unsent.waiting); n > 0 {
		if last := &x.unsent.waiting[n-1]; cap(*last.buffer)-len(*last.buffer) >= size {
			*last.buffer = append(*last.buffer, *r.buffer...)
			last.held.add(r.held)
			flow.Buffers.Put(r.buffer)
			return
		}
	}
	x.unsent.waiting = append(x.unsent.waiting, r)
}

// flush sends what waits, unless somebody else is about to. Whoever calls it
// has the lock, which is free while it sends.
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

// send sends one message, with the lock free. Nobody else may be sending.
func (x *exchange) send(message flow.EncodedMessage) error {
	x.unsent.sending, x.unsent.since = true, time.Now()
	x.mu.Unlock()
	err := x.stream.SendMsg(message)
	x.mu.Lock()
	x.unsent.sending = false
	x.changed.Broadcast()
	return err
}

// drain sends while more waits than may, and waits for whoever else sends. The
// caller has the lock.
func (x *exchange) drain() {
	for x.unsent.bytes > maxUnsent && x.gone() == nil {
		if x.flush(); x.unsent.sending {
			x.changed.Wait()
		}
	}
}

// settle sends what waits and returns once nothing does.
func (x *exchange) settle() error {
	for x.unsent.err == nil && (x.unsent.sending || len(x.unsent.waiting) > 0) {
		if x.flush(); x.unsent.sending {
			x.changed.Wait()
		}
	}
	return x.unsent.err
}
