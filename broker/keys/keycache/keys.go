// SPDX-License-Identifier: Apache-2.0

package keycache

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

const (
	// MaxKeys is the maximum number of keys that are remembered. Then each new key replaces
	// another one.
	MaxKeys = 1024
	// maxQuestion bounds how long a question may take, because it continues after its caller has
	// given up.
	maxQuestion = time.Minute
)

// Find asks the key manager for a key. before is the key that Find returned the last time, or
// nil. If the key has not changed, Find can return before again. Find returns the errors of
// [keys.Provider].
type Find func(ctx context.Context, name keys.Name, before *keys.Key) (*keys.Key, error)

// Keys remembers keys. It is safe for concurrent use.
type Keys struct {
	find   Find
	keep   time.Duration
	ctx    context.Context //nolint:containedctx // the context of questions, which nobody who waits may cancel
	stop   context.CancelFunc
	flight singleflight.Group

	mu      sync.Mutex
	entries map[keys.Name]entry
	// generation counts calls of Forget. The answer to a question of an earlier generation is
	// not remembered.
	generation int
	sweeper    *time.Timer // nil if there are no entries
}

type entry struct {
	key   *keys.Key
	until time.Time
}

// New returns Keys that use a key for the time keep without asking again. If keep is 0, every
// call asks. A key that nobody uses is forgotten after twice the time.
func New(keep time.Duration, find Find) *Keys {
	ctx, stop := context.WithCancel(context.Background())
	return &Keys{find: find, keep: keep, ctx: ctx, stop: stop, entries: map[keys.Name]entry{}}
}

// KeyNow returns a key that is remembered, or [keys.ErrWouldWait].
func (k *Keys) KeyNow(name keys.Name) (*keys.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.entries[name]; ok && time.Now().Before(e.until) {
		return e.key, nil
	}
	return nil, keys.ErrWouldWait
}

// Key returns a key that is remembered, or asks for it. If ctx ends, Key returns ctx's error,
// and others that wait for the same key still get it. Errors are not remembered.
func (k *Keys) Key(ctx context.Context, name keys.Name) (*keys.Key, error) {
	if key, err := k.KeyNow(name); err == nil {
		return key, nil
	}
	k.mu.Lock()
	generation, before := k.generation, k.entries[name].key
	k.mu.Unlock()
	question := fmt.Sprintf("%d %q %q %t %q %d", generation, name.ID, name.Version, name.Opens, name.Use.Profile, name.Use.Operation)
	answer := k.flight.DoChan(question, func() (any, error) {
		// An earlier flight may have ended since KeyNow was called above.
		if key, err := k.KeyNow(name); err == nil {
			return key, nil
		}
		limited, cancel := context.WithTimeout(k.ctx, maxQuestion)
		defer cancel()
		key, err := k.find(limited, name, before)
		switch {
		case err != nil && k.ctx.Err() != nil:
			return nil, fmt.Errorf("%w: it is closed", keys.ErrUnavailable)
		case err != nil && limited.Err() != nil:
			return nil, fmt.Errorf("%w: found no answer within %s", keys.ErrUnavailable, maxQuestion)
		}
		if err == nil {
			k.remember(name, key, generation)
		}
		return key, err
	})
	select {
	case result := <-answer:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(*keys.Key), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (k *Keys) remember(name keys.Name, key *keys.Key, generation int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keep <= 0 || generation != k.generation || k.ctx.Err() != nil {
		return
	}
	if _, known := k.entries[name]; !known && len(k.entries) >= MaxKeys {
		for other := range k.entries {
			delete(k.entries, other)
			break
		}
	}
	k.entries[name] = entry{key, time.Now().Add(k.keep)}
	if k.sweeper == nil {
		k.sweeper = time.AfterFunc(k.keep, k.sweep)
	}
}

// sweep forgets keys that nobody has asked for since they expired.
func (k *Keys) sweep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, e := range k.entries {
		if !time.Now().Before(e.until.Add(k.keep)) {
			delete(k.entries, name)
		}
	}
	if k.sweeper = nil; len(k.entries) > 0 && k.ctx.Err() == nil {
		k.sweeper = time.AfterFunc(k.keep, k.sweep)
	}
}

// Forget forgets all versions of a key, which has changed.
func (k *Keys) Forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.generation++
	for name := range k.entries {
		if name.ID == id {
			delete(k.entries, name)
		}
	}
}

// Close forgets all keys and cancels questions. Later calls of Key fail.
func (k *Keys) Close() {
	k.stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.entries)
	if k.sweeper != nil {
		k.sweeper.Stop()
		k.sweeper = nil
	}
}
