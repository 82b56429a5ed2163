// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/mem"
)

const (
	// smallBuffer is the size in bytes of most buffers. gRPC counts the references only of
	// buffers that are larger than 1 KiB.
	smallBuffer = 4 << 10
	// batchBuffer is the size in bytes of buffers with several requests.
	batchBuffer = 32 << 10
)

// buffers is the pool of buffers for requests. Put overwrites a buffer, because requests may
// contain keys and plaintexts.
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

// Put implements mem.BufferPool. It overwrites only the bytes up to the length of the buffer.
func (p *bufferPool) Put(buffer *[]byte) {
	clear(*buffer)
	if pool, capacity := p.of(cap(*buffer)); cap(*buffer) >= capacity {
		pool.Put(buffer)
	}
}

// outgoing is an encoded message to send. Each time gRPC sends it, gRPC gets and frees its own
// reference to the buffer.
type outgoing struct {
	head   []byte // bytes that are sent before the buffer
	buffer mem.Buffer
}

// incoming is an encoded message that was received. The receiver frees it.
type incoming struct{ buffer mem.Buffer }

func (m *incoming) free() {
	if m.buffer != nil {
		m.buffer.Free()
		m.buffer = nil
	}
}

// wireCodec is a codec for messages that are encoded already.
type wireCodec struct{}

// Name implements encoding.CodecV2. It is part of the content type that the broker reads.
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
