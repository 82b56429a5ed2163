// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
)

// What a [Verifier] remembers is public and stays true, so that nothing of it expires: that a key has signed a text, and which key a text
// says. Whether the issuer still has the key, and what a token says, is looked at each time, and no decision is remembered.
const (
	// rememberedTokens is how many tokens, whose signature was right, one generation of [recent] has. Two generations take less than 4 MB.
	rememberedTokens = 1 << 14
	// rememberedKeys is how many keys of proofs, which callers have proven to have, one generation has. Two generations take less than
	// 6 MB, if all are of RSA with 4096 bits.
	rememberedKeys = 1 << 11
)

// recent remembers values by what they were found from, those that were used last. It has two generations: a full one becomes the one
// before, which is then forgotten.
type recent[T any] struct {
	limit int
	// hits and misses count what [recent.get] has said.
	hits, misses atomic.Uint64

	mu                sync.Mutex
	current, previous map[source]T
}

// source is a hash of what a value was found from: all of it, byte for byte.
type source [sha256.Size]byte

func newRecent[T any](limit int) *recent[T] {
	return &recent[T]{limit: limit, current: map[source]T{}}
}

// signatureOf names the signature of a token by a key. All thumbprints have one length.
func signatureOf(key publicKey, token string) source {
	return sha256.Sum256([]byte(key.thumbprint + token))
}

// get returns a value, and reports whether it is remembered. One of the previous generation then belongs to the current one.
func (r *recent[T]) get(from source) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, found := r.current[from]
	if !found {
		if value, found = r.previous[from]; found {
			r.put(from, value)
		}
	}
	if found {
		r.hits.Add(1)
	} else {
		r.misses.Add(1)
	}
	return value, found
}

// add remembers a value.
func (r *recent[T]) add(from source, value T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(from, value)
}

func (r *recent[T]) put(from source, value T) {
	if len(r.current) == r.limit {
		r.current, r.previous = map[source]T{}, r.current
	}
	r.current[from] = value
}
