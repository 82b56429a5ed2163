// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"sync"
	"time"
)

// identity is a hash of what names a proof or a caller.
type identity [16]byte

// The answers of [replays.add].
const (
	fresh = iota
	replayed
	full
)

// replays remembers proofs for at least as long as they can be used. It has two generations: a new one begins after the life of
// a proof, and then the one before the last is forgotten. So nothing has to be searched for what is old.
type replays struct {
	limit int
	life  time.Duration

	mu                sync.Mutex
	current, previous generation
	began             time.Time
}

// generation has the proofs of a time, and how many of them each caller has.
type generation struct {
	proofs  map[identity]struct{}
	callers map[identity]int
}

func newGeneration() generation {
	return generation{map[identity]struct{}{}, map[identity]int{}}
}

func newReplays(limit int, life time.Duration) *replays {
	return &replays{limit: limit, life: life, current: newGeneration(), previous: newGeneration()}
}

// add remembers a proof of a caller. It is full for a caller with half of the table, so that one caller cannot shut out all
// others.
func (r *replays) add(proof, caller identity, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch age := now.Sub(r.began); {
	case age >= 2*r.life:
		r.current, r.previous, r.began = newGeneration(), newGeneration(), now
	case age >= r.life:
		r.current, r.previous, r.began = newGeneration(), r.current, now
	}
	if r.current.has(proof) || r.previous.has(proof) {
		return replayed
	}
	if len(r.current.proofs)+len(r.previous.proofs) >= r.limit || r.current.callers[caller]+r.previous.callers[caller] >= r.limit/2 {
		return full
	}
	r.current.proofs[proof] = struct{}{}
	r.current.callers[caller]++
	return fresh
}

// size returns how many proofs are remembered.
func (r *replays) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.current.proofs) + len(r.previous.proofs)
}

func (g generation) has(proof identity) bool {
	_, found := g.proofs[proof]
	return found
}
