// SPDX-License-Identifier: Apache-2.0

package server

import "sync"

// buffers has memory for requests and replies. What is put back is overwritten,
// since both have secrets in them.
var buffers = bufferPool{small: poolOf(smallBuffer), shared: poolOf(sharedBuffer), large: poolOf(largeBuffer)}

// Sizes in bytes of the buffers that are used again.
const (
	// smallBuffer is for a single small message. gRPC keeps none of half the size.
	smallBuffer = 2 << 10
	// sharedBuffer is for the small replies of Exchange that go together.
	sharedBuffer = 16 << 10
	// largeBuffer is for a message with the largest input, and worthLarge the size of
	// the smallest message that it is used for.
	largeBuffer = maxInputSize + 80<<10
	worthLarge  = largeBuffer / 2
)

type bufferPool struct{ small, shared, large sync.Pool }

func poolOf(size int) sync.Pool {
	return sync.Pool{New: func() any {
		buffer := make([]byte, size)
		return &buffer
	}}
}

// of is the pool of the buffers for size bytes, nil where none is used again.
func (p *bufferPool) of(size int) *sync.Pool {
	switch {
	case size <= smallBuffer:
		return &p.small
	case size <= sharedBuffer:
		return &p.shared
	case size >= worthLarge && size <= largeBuffer:
		return &p.large
	}
	return nil
}

// Get implements mem.BufferPool.
func (p *bufferPool) Get(size int) *[]byte {
	pool := p.of(size)
	if pool == nil {
		buffer := make([]byte, size)
		return &buffer
	}
	buffer := pool.Get().(*[]byte)
	*buffer = (*buffer)[:size]
	return buffer
}

// Put implements mem.BufferPool.
func (p *bufferPool) Put(buffer *[]byte) {
	clear(*buffer)
	if size := cap(*buffer); size == smallBuffer || size == sharedBuffer || size == largeBuffer {
		p.of(size).Put(buffer)
	}
}
