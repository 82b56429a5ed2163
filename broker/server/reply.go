// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// replyBuffers has buffers for replies. What is put back is overwritten, since
// replies have secrets in them.
var replyBuffers = replyBufferPool{small: poolOf(smallReplySize), shared: poolOf(sharedRepliesSize)}

// Sizes in bytes of the buffers that are used again.
const (
	// smallReplySize is for a single reply. gRPC keeps none of half the size.
	smallReplySize = 2 << 10
	// sharedRepliesSize is for the small replies of Exchange that go together.
	sharedRepliesSize = 16 << 10
)

type replyBufferPool struct{ small, shared sync.Pool }

func poolOf(size int) sync.Pool {
	return sync.Pool{New: func() any {
		buffer := make([]byte, size)
		return &buffer
	}}
}

// Get implements mem.BufferPool.
func (p *replyBufferPool) Get(size int) *[]byte {
	if size > sharedRepliesSize {
		buffer := make([]byte, size)
		return &buffer
	}
	pool := &p.shared
	if size <= smallReplySize {
		pool = &p.small
	}
	buffer := pool.Get().(*[]byte)
	*buffer = (*buffer)[:size]
	return buffer
}

// Put implements mem.BufferPool.
func (p *replyBufferPool) Put(buffer *[]byte) {
	clear(*buffer)
	switch cap(*buffer) {
	case smallReplySize:
		p.small.Put(buffer)
	case sharedRepliesSize:
		p.shared.Put(buffer)
	}
}

// unaryReply is a reply as it will be on the wire, on its way to the codec.
type unaryReply struct {
	buffer *[]byte
	// The rest is for a large reply: the memory that it holds until its client has
	// read it.
	memory *memory
	conn   *callerConn
	held   int64
}

// encode makes a reply with the metadata of its request, which is as retag returned
// it, and takes over what the request holds.
func (m *memory) encode(conn *callerConn, reply proto.Message, metadata []byte, held int64) (*unaryReply, error) {
	size := proto.Size(reply) + len(metadata)
	buffer := replyBuffers.Get(size)
	wire, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buffer)[:0], reply)
	if err != nil {
		replyBuffers.Put(buffer)
		return nil, status.Errorf(codes.Internal, "the reply cannot be written: %v", err)
	}
	// To its client this is a field of the message, whatever the fields before it.
	wire = append(wire, metadata...)
	*buffer = wire
	if size <= smallReply {
		m.Release(held)
		return &unaryReply{buffer: buffer}, nil
	}
	kept := min(held, int64(size))
	m.Release(held - kept)
	return &unaryReply{buffer: buffer, memory: m, conn: conn, held: kept}, nil
}

// message is what gRPC gets. From then on the client may take its time.
func (r *unaryReply) message() mem.BufferSlice {
	if r.memory == nil {
		return mem.BufferSlice{mem.NewBuffer(r.buffer, &replyBuffers)}
	}
	return mem.BufferSlice{mem.NewBuffer(r.buffer, heldBuffer{r.memory, r.memory.unread(r.conn, r.held)})}
}

// heldBuffer is the pool that the bytes of a large reply go back to.
type heldBuffer struct {
	memory *memory
	turn   *turn
}

// Get implements mem.BufferPool; nobody takes from it.
func (b heldBuffer) Get(size int) *[]byte { return replyBuffers.Get(size) }

// Put implements mem.BufferPool.
func (b heldBuffer) Put(buffer *[]byte) {
	replyBuffers.Put(buffer)
	if b.turn != nil {
		b.memory.read(b.turn)
	}
}
