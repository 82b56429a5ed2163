// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"sync/atomic"

	"google.golang.org/grpc/mem"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
)

// replyRoom is what a reply may have in bytes beside twice the size of its request,
// which the message of the request has memory for.
const replyRoom = 1 << 10

// exchangeMessage is a message of Exchange with its memory. Both last until the last
// of its calls that went to the workers has its reply written.
type exchangeMessage struct {
	wire   *[]byte
	memory int64
	from   *flow.Caller
	refs   atomic.Int32
}

// newExchangeMessage takes over a message and the memory that the slot has for it.
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
	flow.Buffers.Put(m.wire)
	if m.memory > 0 {
		m.from.ReleaseMemory(m.memory)
	}
}

// holding is what replies hold until they are written.
type holding struct {
	calls    int
	messages []*exchangeMessage
	// extra is memory of the caller from in bytes, beside the memory of the messages.
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

// cover takes memory for a reply that is larger than its request lets expect; false
// where there is none.
func (h *holding) cover(from *flow.Caller, request, reply int) bool {
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

// sentReplies are replies that gRPC has. They are the pool that their buffer goes back
// to once it is written.
type sentReplies struct {
	exchange *exchange
	held     holding
}

// sent keeps what replies hold until they are written. Whoever calls it has the lock.
func (x *exchange) sent(held holding) mem.BufferPool {
	if held.calls == 0 {
		return flow.Buffers
	}
	s := &sentReplies{x, held}
	if x.unsent.unwritten == nil {
		x.unsent.unwritten = map[*sentReplies]struct{}{}
	}
	x.unsent.unwritten[s] = struct{}{}
	return s
}

// Get implements mem.BufferPool; nobody takes from it.
func (s *sentReplies) Get(size int) *[]byte { return flow.Buffers.Get(size) }

// Put implements mem.BufferPool.
func (s *sentReplies) Put(buffer *[]byte) {
	flow.Buffers.Put(buffer)
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, kept := x.unsent.unwritten[s]; kept {
		delete(x.unsent.unwritten, s)
		x.release(s.held)
	}
}
