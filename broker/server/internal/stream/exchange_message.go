// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"sync/atomic"

	"google.golang.org/grpc/mem"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
)

// replyRoom is the maximum number of bytes of a reply beyond twice the size of its request for
// which it takes no more memory. The message of the request has memory for twice its size.
const replyRoom = 1 << 10

// exchangeMessage is a message of Exchange with its memory. Both are freed when the replies
// to all its calls of workers are written.
type exchangeMessage struct {
	wire   *[]byte
	memory int64
	from   *flow.Caller
	refs   atomic.Int32
}

// newExchangeMessage returns a message that owns its buffer, and the memory that the slot
// has for it.
func newExchangeMessage(p *flow.Slot, wire *[]byte) *exchangeMessage {
	m := &exchangeMessage{wire: wire, memory: p.HandOverMemory(), from: p.Caller()}
	m.refs.Store(1)
	return m
}

func (m *exchangeMessage) ref() { m.refs.Add(1) }

func (m *exchangeMessage) free() {
	if m.refs.Add(-1) > 0 {
		return
	}
	buffers.Pool.Put(m.wire)
	if m.memory > 0 {
		m.from.ReleaseMemory(m.memory)
	}
}

// holding has the resources that calls hold until their replies are written.
type holding struct {
	calls    int
	messages []*exchangeMessage
	// extra is memory in bytes in addition to the memory of the messages. It belongs to the share
	// of the caller from.
	extra int64
	from  *flow.Caller
}

func (h *holding) add(more holding) {
	h.calls += more.calls
	h.messages = append(h.messages, more.messages...)
	h.extra += more.extra
	if more.from != nil {
		h.from = more.from
	}
}

// takeReplyMemory takes memory for a reply that needs more than replyRoom allows. It reports whether
// there was enough. request and reply are sizes in bytes.
func (h *holding) takeReplyMemory(from *flow.Caller, request, reply int) bool {
	extra := int64(reply - 2*request - replyRoom)
	if extra <= 0 {
		return true
	}
	if !from.TryMemory(extra) {
		return false
	}
	h.extra, h.from = extra, from
	return true
}

func (h *holding) free() {
	for _, m := range h.messages {
		m.free()
	}
	if h.extra > 0 {
		h.from.ReleaseMemory(h.extra)
	}
}

// sentReplies are replies that gRPC writes. They are the pool to which gRPC returns their
// buffer after it has written them.
type sentReplies struct {
	exchange *exchange
	held     holding
}

// sent returns the pool for the buffer of replies, which releases what they hold when they are
// written. The caller has locked x.mu.
func (x *exchange) sent(held holding) mem.BufferPool {
	if held.calls == 0 {
		return buffers.Pool
	}
	s := &sentReplies{x, held}
	if x.unsent.unwritten == nil {
		x.unsent.unwritten = map[*sentReplies]struct{}{}
	}
	x.unsent.unwritten[s] = struct{}{}
	return s
}

// Get implements mem.BufferPool. gRPC does not call it for replies.
func (s *sentReplies) Get(size int) *[]byte { return buffers.Pool.Get(size) }

// Put implements mem.BufferPool.
func (s *sentReplies) Put(buffer *[]byte) {
	buffers.Pool.Put(buffer)
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, kept := x.unsent.unwritten[s]; kept {
		delete(x.unsent.unwritten, s)
		x.release(s.held)
	}
}
