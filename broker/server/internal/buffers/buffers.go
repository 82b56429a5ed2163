// SPDX-License-Identifier: Apache-2.0

package buffers

import (
	"slices"
	"sync"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
)

// Pool is the pool of the buffers for received frames, requests and replies. Put
// overwrites a buffer, because any message may contain secrets.
//
// Clients decide how large their frames are. The small sizes of buffers are close to each other,
// so a buffer is only a little larger than its frame.
var Pool = newBufferPool(smallSize, 3<<10, 4<<10, 6<<10, 8<<10, 12<<10, SharedSize, chunkSize, LargeSize)

// Sizes in bytes of buffers that the pool keeps.
const (
	// smallSize is for a single small message. gRPC uses no pool for buffers of less than half
	// this size.
	smallSize = 2 << 10
	// SharedSize is for small replies of Exchange that share a buffer, and for the largest
	// frame.
	SharedSize = 16 << 10
	// chunkSize is for a message with the largest chunk, and for its reply.
	chunkSize = limits.MaxChunkSize + 1<<10
	// LargeSize is for a message with the largest input.
	LargeSize = limits.MaxInputSize + 80<<10
)

type bufferPool struct {
	sizes []int
	pools []sync.Pool
}

func newBufferPool(sizes ...int) *bufferPool {
	return &bufferPool{sizes, make([]sync.Pool, len(sizes))}
}

// of returns the pool of the buffers for size bytes, and their size. pool is nil if no
// pool fits: size is too large, or the buffers would be more than twice as large.
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
