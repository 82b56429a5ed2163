// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/sha256"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// session is a session that has not ended.
type session struct {
	id       string
	owner    Owner
	protocol algorithm.Session
	clientID string
	began    time.Time
	expires  time.Time
	// window is the clock window when the session began. The profile may have a smaller one now. A
	// larger one has no effect, because nonces are remembered for this one.
	window time.Duration
	share  *share
	// key is the number of the slot with the key, and index where the session is among all. The mutex of
	// the store guards them.
	key, index int
	// shared has the session, nil if it is in the memory of the broker.
	shared Shared

	mu             sync.Mutex
	ended          bool
	opened, sealed uint64
	nonces         nonces
	// epoch counts the keys of a native session from 1, and numbers remembers its requests since the
	// session has the key. Both are zero in other sessions.
	epoch   int64
	numbers *numbers
}

// share is what the callers of one socket have of the store.
type share struct {
	sessions int // guarded by the mutex of the store
	nonces   atomic.Int64
}

// nonceID is the beginning of the SHA-256 of a nonce. Should two nonces have the same one, the second
// is refused.
type nonceID [16]byte

func idOfNonce(nonce string) nonceID {
	sum := sha256.Sum256([]byte(nonce))
	return nonceID(sum[:16])
}

// nonces remembers the nonces of a session until the timestamps of their requests have left the window. It has one set for each
// period as long as the window: three sets while the clock only goes forward. So it forgets whole sets, without a search.
type nonces struct {
	sets  []nonceSet
	count int
	// floor is the time from which on all nonces are remembered, in milliseconds since 1970. So a forgotten nonce does not become
	// valid again when the clock is set back.
	floor int64
}

// nonceSet has the nonces of a period.
type nonceSet struct {
	period int64 // the time of a request divided by the window
	ids    map[nonceID]struct{}
}

// forget drops the sets whose times have all left the window at a time, and returns how many nonces
// they had. All times are in milliseconds.
func (n *nonces) forget(now, window int64) (dropped int) {
	n.sets = slices.DeleteFunc(n.sets, func(set nonceSet) bool {
		end := (set.period + 1) * window
		if end > now-window {
			return false
		}
		dropped += len(set.ids)
		n.floor = max(n.floor, end)
		return true
	})
	n.count -= dropped
	return dropped
}

// has reports whether a nonce is remembered, whatever its time.
func (n *nonces) has(id nonceID) bool {
	for _, set := range n.sets {
		if _, known := set.ids[id]; known {
			return true
		}
	}
	return false
}

func (n *nonces) add(id nonceID, at, window int64) {
	n.count++
	period := at / window
	for _, set := range n.sets {
		if set.period == period {
			set.ids[id] = struct{}{}
			return
		}
	}
	n.sets = append(n.sets, nonceSet{period, map[nonceID]struct{}{id: {}}})
}

// accept accepts an authentic request once. limit is the maximum number of nonces of the callers
// of the socket.
func (s *session) accept(m *message, policy *profile.SessionPolicy, now time.Time, limit int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, window := now.UnixMilli(), s.window.Milliseconds()
	s.forgetLocked(at)
	known, inWindow := s.nonces.has(m.nonceID), s.isInWindow(m, policy, now)
	switch {
	case s.ended, s.opened >= policy.Messages():
		return ErrRefused
	case !inWindow, m.timestamp < s.nonces.floor:
		return ErrRefused
	case known:
		return ErrRefused
	case int64(s.nonces.count) >= limit/noncesOfOne:
		return ErrBusy
	case s.share.nonces.Add(1) > limit:
		s.share.nonces.Add(-1)
		return ErrBusy
	default:
		s.nonces.add(m.nonceID, m.timestamp, window)
		s.opened++
		return nil
	}
}

// countReply counts a reply. It reports false if the session may seal no more.
func (s *session) countReply(policy *profile.SessionPolicy) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.sealed >= policy.Messages() {
		return false
	}
	s.sealed++
	return true
}

// forget forgets nonces that have expired.
func (s *session) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(now.UnixMilli())
}

func (s *session) forgetLocked(now int64) {
	s.share.nonces.Add(-int64(s.nonces.forget(now, s.window.Milliseconds())))
}

// end ends the session for calls that have its key already.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.share.nonces.Add(-int64(s.nonces.count))
	s.nonces = nonces{}
}
