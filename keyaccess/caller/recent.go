// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
)

// A [Verifier] remembers that a key has signed a text, and which key a text encodes. Both are public and stay true, so no entry expires.
// It checks each time whether the issuer still has the key, and the claims of the token. It remembers no decision.
const (
	// rememberedTokens is the maximum number of tokens with a valid signature in one generation of [recent]. Two generations take less
	// than 4 MB.
	rememberedTokens = 1 << 14
	// rememberedKeys is the maximum number of keys of valid proofs in one generation. Two generations take less than 6 MB, even if all
	// keys are RSA keys of 4096 bits.
	rememberedKeys = 1 << 11
)

// recent is a cache of the values that were used most recently, by the hash of their source. It has two generations. When the current
// generation is full, it becomes the previous one, and the old previous generation is dropped.
type recent[T any] struct {
	limit int
	// hits and misses count the results of [recent.get].
	hits, misses atomic.Uint64

	mu                sync.Mutex
	current, previous map[source]T
}

// source is a hash of all bytes that a value was computed from.
type source [sha256.Size]byte

func newRecent[T any](limit int) *recent[T] {
	return &recent[T]{limit: limit, current: map[source]T{}}
}

// signatureOf returns the source for the signature of a token by a key. All thumbprints have the same length, so two different
// pairs never have the same text.
func signatureOf(key publicKey, token string) source {
	return sha256.Sum256([]byte(key.thumbprint + token))
}

// get returns a value, and reports whether it is remembered. It moves a value of the previous generation to the current one.
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
