// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/mem"
)

const (
	// smallBuffer is the size in bytes of most buffers. It is above the size from
	// which on gRPC counts who still uses a buffer.
	smallBuffer = 4 << 10
	// batchBuffer is the size of those in which requests go out together.
	batchBuffer = 32 << 10
)

// buffers keeps buffers for requests. What is put back is overwritten, since
// requests have keys and plaintexts in them.
var buffers = &bufferPool{}

// bufferPool implements mem.BufferPool.
type bufferPool struct{ small, batch, large sync.Pool }

func (p *bufferPool) of(size int) (pool *sync.Pool, capacity int) {
	switch {
	case size <= smallBuffer:
		return &p.small, smallBuffer
	case size <= batchBuffer:
		return &p.batch, batchBuffer
	default:
		return &p.large, size
	}
}

// Get implements mem.BufferPool.
func (p *bufferPool) Get(size int) *[]byte {
	pool, capacity := p.of(size)
	if found, ok := pool.Get().(*[]byte); ok && cap(*found) >= size {
		*found = (*found)[:size]
		return found
	}
	made := make([]byte, size, capacity)
	return &made
}

// Put implements mem.BufferPool. What the length leaves out is not overwritten.
func (p *bufferPool) Put(buffer *[]byte) {
	clear(*buffer)
	if pool, capacity := p.of(cap(*buffer)); cap(*buffer) >= capacity {
		pool.Put(buffer)
	}
}

// outgoing is a message that is sent as it is. gRPC frees what it is given, so
// that it gets a reference of its own.
type outgoing struct {
	head   []byte // what is sent before the buffer; not used again
	buffer mem.Buffer
}

// incoming is a message as it was received; whoever received it frees it.
type incoming struct{ buffer mem.Buffer }

func (m *incoming) free() {
	if m.buffer != nil {
		m.buffer.Free()
		m.buffer = nil
	}
}

// wireCodec passes messages as the bytes they are.
type wireCodec struct{}

// Name implements encoding.CodecV2. It is what the broker finds in the
// content type.
func (wireCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (wireCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*outgoing)
	if !ok {
		return nil, fmt.Errorf("a message is a %T, expected one to send", v)
	}
	m.buffer.Ref()
	if m.head != nil {
		return mem.BufferSlice{mem.SliceBuffer(m.head), m.buffer}, nil
	}
	return mem.BufferSlice{m.buffer}, nil
}

// Unmarshal implements encoding.CodecV2.
func (wireCodec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*incoming)
	if !ok {
		return fmt.Errorf("a message is a %T, expected one to receive", v)
	}
	m.buffer = data.MaterializeToBuffer(buffers)
	return nil
}
