// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"container/list"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/lockedmemory"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

const (
	// keepTime is how long a session is kept after it was read. The broker asks Redis at each use whether the session has ended.
	keepTime = time.Minute
	// maxRecent is the maximum number of sessions that are kept. Then a new one replaces the
	// oldest.
	maxRecent = 4096
)

// recent has sessions that were read a short time ago, with their keys in locked memory.
type recent struct {
	// unlocked is called once if the memory may be swapped or be in a core dump.
	unlocked func(error)

	mu      sync.Mutex
	memory  lockedmemory.Memory // allocated when the first session is added
	closed  bool
	entries map[string]*list.Element
	order   *list.List  // elements are *entry, the oldest first
	sweeper *time.Timer // nil if there are no entries
}

type entry struct {
	record *session.Record
	slot   int
	until  time.Time
}

func newRecent(unlocked func(error)) *recent {
	return &recent{unlocked: unlocked, entries: map[string]*list.Element{}, order: list.New()}
}

// get returns a session and copies its key, or returns nil.
func (r *recent) get(id string, key []byte) *session.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.entries[id]
	if found == nil {
		return nil
	}
	e := found.Value.(*entry)
	if !time.Now().Before(e.until) {
		return nil
	}
	copy(key, r.memory.Slot(e.slot))
	return e.record
}

// add keeps a session, if there is memory for its key.
func (r *recent) add(record *session.Record, key []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.dropLocked(record.ID)
	if len(r.entries) >= maxRecent {
		r.dropLocked(r.order.Front().Value.(*entry).record.ID)
	}
	if r.memory.Bytes() == nil {
		var unlocked error
		if r.memory, unlocked = lockedmemory.New(maxRecent, keySize); unlocked != nil {
			r.unlocked(unlocked)
		}
	}
	slot, ok := r.memory.Take()
	if !ok {
		return
	}
	copy(r.memory.Slot(slot), key)
	r.entries[record.ID] = r.order.PushBack(&entry{record, slot, time.Now().Add(keepTime)})
	if r.sweeper == nil {
		r.sweeper = time.AfterFunc(keepTime, r.sweep)
	}
}

// drop overwrites the key of a session.
func (r *recent) drop(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(id)
}

func (r *recent) dropLocked(id string) {
	if found := r.entries[id]; found != nil {
		r.memory.Free(found.Value.(*entry).slot)
		r.order.Remove(found)
		delete(r.entries, id)
	}
}

// sweep overwrites the keys that have expired.
func (r *recent) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweeper = nil
	now := time.Now()
	for oldest := r.order.Front(); oldest != nil; oldest = r.order.Front() {
		e := oldest.Value.(*entry)
		if now.Before(e.until) {
			r.sweeper = time.AfterFunc(e.until.Sub(now), r.sweep)
			return
		}
		r.dropLocked(e.record.ID)
	}
}

// forget overwrites all keys.
func (r *recent) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.entries {
		r.dropLocked(id)
	}
}

// close is forget, and gives the memory back. Nothing is kept any more.
func (r *recent) close() {
	r.forget()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.sweeper != nil {
		r.sweeper.Stop()
		r.sweeper = nil
	}
	r.memory.Close()
}
