// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
)

// rememberedTokens is how many tokens one generation of [signatures] has. Two generations take less than 4 MB.
const rememberedTokens = 1 << 14

// signatures remembers tokens whose signature was right, so that a token that comes with many requests costs one check of its signature.
// That a key has signed a text stays true, so nothing here expires. Whether the issuer still has the key, and what the token says, is
// looked at each time. It has two generations: a full one becomes the one before, which is then forgotten.
type signatures struct {
	limit int
	// hits and misses count what [signatures.has] has said.
	hits, misses atomic.Uint64

	mu                sync.Mutex
	current, previous map[signatureID]struct{}
}

// signatureID is a hash of a key and all bytes of a token, with the signature.
type signatureID [sha256.Size]byte

func newSignatures(limit int) *signatures {
	return &signatures{limit: limit, current: map[signatureID]struct{}{}}
}

// signatureOf names the signature of a token by a key. All thumbprints have one length.
func signatureOf(key publicKey, token string) signatureID {
	return sha256.Sum256([]byte(key.thumbprint + token))
}

// has reports whether a signature is remembered. One of the previous generation then belongs to the current one.
func (s *signatures) has(id signatureID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.current[id]
	if !found {
		if _, found = s.previous[id]; found {
			s.put(id)
		}
	}
	if found {
		s.hits.Add(1)
	} else {
		s.misses.Add(1)
	}
	return found
}

// add remembers a signature that is right.
func (s *signatures) add(id signatureID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(id)
}

func (s *signatures) put(id signatureID) {
	if len(s.current) == s.limit {
		s.current, s.previous = map[signatureID]struct{}{}, s.current
	}
	s.current[id] = struct{}{}
}
