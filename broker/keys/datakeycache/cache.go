// SPDX-License-Identifier: Apache-2.0

package datakeycache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/lockedmemory"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

const (
	// KeepTime is how long a data key is kept.
	KeepTime = time.Minute
	// MaxKeys is the maximum number of data keys that are kept. Then a new one replaces the
	// oldest.
	MaxKeys = 1024
	// MaxKeySize is the size in bytes of the largest data key that is kept.
	MaxKeySize = 64
	// maxUnwrap bounds how long an unwrap may take, because it goes on after a caller has given
	// up.
	maxUnwrap = time.Minute
)

// ID identifies a wrapped key and the caller who may have it unwrapped.
type ID [sha256.Size]byte

// NewID returns an id made of everything that the data key depends on: the caller, the profile
// and its version, and the whole wrapped key with its context.
func NewID(parts ...[]byte) ID {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return ID(h.Sum(nil))
}

// Unwrap asks a key manager to unwrap a wrapped key. The cache owns the data key that it returns.
type Unwrap func(ctx context.Context) (dataKey []byte, err error)

// Cache keeps data keys. It is safe for concurrent use.
type Cache struct {
	ctx  context.Context //nolint:containedctx // the context of unwraps, which nobody who waits may cancel
	stop context.CancelFunc
	// unlocked is called while mu is locked.
	unlocked func(error)

	hits, misses, coalesced atomic.Uint64

	mu sync.Mutex
	// memory is allocated for the first data key.
	memory  lockedmemory.Memory
	entries map[ID]entry
	running map[ID]*run
	// generation counts calls of Forget. Data keys of an earlier generation are not kept.
	generation int
	sweeper    *time.Timer // nil if there are no entries
}

type entry struct {
	slot, size int
	until      time.Time
}

// New returns an empty cache. It allocates memory for its first key, and calls unlocked if that
// memory may be swapped or be in a core dump.
func New(unlocked func(error)) *Cache {
	ctx, stop := context.WithCancel(context.Background())
	return &Cache{ctx: ctx, stop: stop, unlocked: unlocked, entries: map[ID]entry{}, running: map[ID]*run{}}
}

// Get returns the data key, which the caller overwrites. It calls unwrap unless the key is kept, or
// another call for the same id runs. The context of unwrap ends when nobody waits any more.
// Errors are not kept.
func (c *Cache) Get(ctx context.Context, id ID, unwrap Unwrap) ([]byte, error) {
	c.mu.Lock()
	if e, kept := c.entries[id]; kept && time.Now().Before(e.until) {
		dataKey := bytes.Clone(c.memory.Slot(e.slot)[:e.size])
		c.mu.Unlock()
		c.hits.Add(1)
		return dataKey, nil
	}
	r := c.running[id]
	if r == nil {
		c.misses.Add(1)
		r = c.start(id, unwrap)
	} else {
		c.coalesced.Add(1)
	}
	r.waiting++
	c.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.leave(id, r)
	if !r.ended {
		return nil, ctx.Err()
	}
	return bytes.Clone(r.dataKey), r.err
}

// run is an unwrap that is running, or has ended and is still waited for.
type run struct {
	cancel  context.CancelFunc
	done    chan struct{}
	waiting int
	ended   bool
	dataKey []byte
	err     error
}

// start begins an unwrap. The caller has locked c.mu.
func (c *Cache) start(id ID, unwrap Unwrap) *run {
	ctx, cancel := context.WithTimeout(c.ctx, maxUnwrap)
	r := &run{cancel: cancel, done: make(chan struct{})}
	c.running[id] = r
	generation := c.generation
	go func() {
		dataKey, err := unwrap(ctx)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: found no answer within %s", keys.ErrUnavailable, maxUnwrap)
		}
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil && generation == c.generation && c.ctx.Err() == nil {
			c.keep(id, dataKey)
		}
		r.ended, r.dataKey, r.err = true, dataKey, err
		if c.running[id] == r {
			delete(c.running, id)
		}
		if r.waiting == 0 {
			clear(dataKey)
		}
		close(r.done)
	}()
	return r
}

// leave ends the wait for an unwrap. The caller has locked c.mu.
func (c *Cache) leave(id ID, r *run) {
	if r.waiting--; r.waiting > 0 {
		return
	}
	clear(r.dataKey)
	r.cancel()
	if c.running[id] == r {
		delete(c.running, id) // the next caller must not get the error of the canceled unwrap
	}
}

// keep stores a data key, if there is memory for it. The caller has locked c.mu.
func (c *Cache) keep(id ID, dataKey []byte) {
	if len(dataKey) > MaxKeySize {
		return
	}
	c.drop(id)
	if len(c.entries) >= MaxKeys {
		oldest, until := ID{}, time.Time{}
		for other, e := range c.entries {
			if until.IsZero() || e.until.Before(until) {
				oldest, until = other, e.until
			}
		}
		c.drop(oldest)
	}
	if c.memory.Bytes() == nil {
		var unlocked error
		if c.memory, unlocked = lockedmemory.New(MaxKeys, MaxKeySize); unlocked != nil {
			c.unlocked(unlocked)
		}
	}
	slot, ok := c.memory.Take()
	if !ok {
		return
	}
	copy(c.memory.Slot(slot), dataKey)
	c.entries[id] = entry{slot, len(dataKey), time.Now().Add(KeepTime)}
	if c.sweeper == nil {
		c.sweeper = time.AfterFunc(KeepTime, c.sweep)
	}
}

// drop overwrites a data key. The caller has locked c.mu.
func (c *Cache) drop(id ID) {
	if e, kept := c.entries[id]; kept {
		c.memory.Free(e.slot)
		delete(c.entries, id)
	}
}

// sweep overwrites the data keys that have expired.
func (c *Cache) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweeper = nil
	now, next := time.Now(), time.Time{}
	for id, e := range c.entries {
		switch {
		case !now.Before(e.until):
			c.drop(id)
		case next.IsZero() || e.until.Before(next):
			next = e.until
		}
	}
	if !next.IsZero() {
		c.sweeper = time.AfterFunc(next.Sub(now), c.sweep)
	}
}

// Forget overwrites all data keys. Unwraps that are running are not kept.
func (c *Cache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	for id := range c.entries {
		c.drop(id)
	}
	if c.sweeper != nil {
		c.sweeper.Stop()
		c.sweeper = nil
	}
}

// Close overwrites all data keys, cancels unwraps, and releases the memory. The cache stores
// nothing afterwards.
func (c *Cache) Close() {
	c.stop()
	c.Forget()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory.Close()
}

// Stats has the counters of the cache since it was made, and the number of its data keys.
type Stats struct {
	// Coalesced are calls that waited for the unwrap of another call. They are neither hits nor
	// misses.
	Hits, Misses, Coalesced uint64
	Entries                 int
}

// Stats returns the counters of the cache.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{c.hits.Load(), c.misses.Load(), c.coalesced.Load(), len(c.entries)}
}
