// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"sync"
	"time"
)

// identity is a hash of the names of a proof or a caller.
type identity [16]byte

// The answers of [replays.add].
const (
	fresh = iota
	replayed
	full
	// forgotten is the answer for a proof that may have been used before: a proof with the same or a
	// later time of issue is not remembered any more. Such a proof is valid only if the clock was set
	// back.
	forgotten
)

// replays remembers proofs for at least as long as they can be used. It has two generations. A new generation begins after the
// lifetime of a proof, and the older of the two is dropped. So no search for expired proofs is needed.
//
// Setting the clock changes how old a proof is, but not when a generation begins. After the clock was set back, a dropped proof
// may be young enough again. So replays refuses every proof that was not issued after all dropped proofs.
type replays struct {
	limit int
	life  time.Duration

	mu                sync.Mutex
	current, previous generation
	began             time.Time
	// newest is the time of issue of the newest proof that is not remembered any more.
	newest time.Time
}

// UsedProofs are the proofs that a verifier has accepted, for [Config].
type UsedProofs struct{ replays *replays }

// UsedProofs returns the table of the proofs that the verifier accepts, to share it with another verifier.
func (v *Verifier) UsedProofs() UsedProofs { return UsedProofs{v.replays} }

// generation has the proofs of a period, and how many of them each caller has.
type generation struct {
	proofs  map[identity]struct{}
	callers map[identity]int
	newest  time.Time // when the newest proof was issued
}

func newGeneration() generation {
	return generation{proofs: map[identity]struct{}{}, callers: map[identity]int{}}
}

func newReplays(limit int, life time.Duration) *replays {
	return &replays{limit: limit, life: life, current: newGeneration(), previous: newGeneration()}
}

// add remembers a proof of a caller. It is full for a caller with half of the table, so that one caller cannot shut out all
// others.
func (r *replays) add(proof, caller identity, issued, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch age := now.Sub(r.began); {
	case age >= 2*r.life:
		r.forget(r.previous)
		r.forget(r.current)
		r.current, r.previous, r.began = newGeneration(), newGeneration(), now
	case age >= r.life:
		r.forget(r.previous)
		r.current, r.previous, r.began = newGeneration(), r.current, now
	}
	if r.current.has(proof) || r.previous.has(proof) {
		return replayed
	}
	if !issued.After(r.newest) {
		return forgotten
	}
	if len(r.current.proofs)+len(r.previous.proofs) >= r.limit || r.current.callers[caller]+r.previous.callers[caller] >= r.limit/2 {
		return full
	}
	r.current.proofs[proof] = struct{}{}
	r.current.callers[caller]++
	r.current.newest = later(r.current.newest, issued)
	return fresh
}

// forget notes that the proofs of a generation are not remembered any more.
func (r *replays) forget(g generation) { r.newest = later(r.newest, g.newest) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
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
