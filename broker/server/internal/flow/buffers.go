// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"
	"sync"
)

// Buffers is the memory for what gRPC receives, and for requests and replies. Put
// overwrites a buffer, since any message may have secrets in it.
//
// Its small sizes are close to each other, because clients decide how large their frames
// are: a frame takes little more memory than it has bytes.
var Buffers = newBufferPool(smallBuffer, 3<<10, 4<<10, 6<<10, 8<<10, 12<<10, SharedBuffer, largeBuffer)

// Sizes in bytes of buffers that are used again.
const (
	// smallBuffer is for a single small message. gRPC keeps none of half the size.
	smallBuffer = 2 << 10
	// SharedBuffer is for the small replies of Exchange that go together, and for the
	// largest frame.
	SharedBuffer = 16 << 10
	// largeBuffer is for a message with the largest input.
	largeBuffer = MaxInputSize + 80<<10
)

type bufferPool struct {
	sizes []int
	pools []sync.Pool
}

func newBufferPool(sizes ...int) *bufferPool {
	return &bufferPool{sizes, make([]sync.Pool, len(sizes))}
}

// of is the pool of the buffers for size bytes, nil where none is used again: they
// would be too large or more than twice as large.
func (p *bufferPool) of(size int) (pool *sync.Pool, whole int) {
	i, _ := slices.BinarySearch(p.sizes, size)
	if i == len(p.sizes) || i > 0 && p.sizes[i] > 2*size {
		return nil, size
	}
	return &p.pools[i], p.sizes[i]
}

// Get implements mem.BufferPool.
func (p *bufferPool) Get(size int) *[]byte {
	pool, whole := p.of(size)
	if pool != nil {
		if buffer, ok := pool.Get().(*[]byte); ok {
			*buffer = (*buffer)[:size]
			return buffer
		}
	}
	buffer := make([]byte, size, whole)
	return &buffer
}

// Put implements mem.BufferPool.
func (p *bufferPool) Put(buffer *[]byte) {
	clear(*buffer)
	if pool, whole := p.of(cap(*buffer)); pool != nil && whole == cap(*buffer) {
		pool.Put(buffer)
	}
}
