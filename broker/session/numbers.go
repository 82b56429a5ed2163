// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// windowSize is the number of sequence numbers that a session remembers: the highest one, and
// those right below it.
const windowSize = 1024

// numbers remembers which numbers of requests were accepted, as receivers of IPsec do (RFC 4303,
// section 3.4.3). A number is accepted once. A number that is windowSize or more below the highest one
// is not accepted any more.
type numbers struct {
	highest int64
	// seen has a bit for each number of the window, at the number modulo windowSize.
	seen [windowSize / 64]uint64
}

// accept accepts a number that is at least 1, and reports whether it was not accepted before.
func (n *numbers) accept(number int64) bool {
	if number <= n.highest-windowSize {
		return false
	}
	if number-n.highest >= windowSize {
		clear(n.seen[:])
		n.highest = number
	}
	for n.highest < number {
		n.highest++
		word, bit := place(n.highest)
		n.seen[word] &^= bit
	}
	word, bit := place(number)
	if n.seen[word]&bit != 0 {
		return false
	}
	n.seen[word] |= bit
	return true
}

func place(number int64) (word int64, bit uint64) {
	at := number % windowSize
	return at / 64, 1 << (at % 64)
}

// isOfEpoch reports whether the session has the key of an epoch.
func (s *session) isOfEpoch(epoch int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch == epoch
}

// acceptNative accepts an authentic request of a native session once.
func (s *session) acceptNative(m *message, policy *profile.SessionPolicy, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.epoch != m.epoch || s.opened >= policy.Messages() || !s.isInWindow(m, policy, now) || !s.numbers.accept(m.number) {
		return ErrRefused
	}
	s.opened++
	return nil
}
