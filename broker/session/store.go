// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/internal/lockedmemory"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
)

// The limits of a store. The sockets of the broker have equal parts of them. With less memory, there
// are fewer; see [Store.Limit].
const (
	// MaxSessions is the maximum number of sessions at one time. Their keys are 4 MiB, half of
	// what most systems let a process lock.
	MaxSessions = 1 << 17
	// maxNonces is the maximum number of nonces of requests that are remembered, so that no
	// request is opened twice.
	maxNonces = noncesOfSession * MaxSessions
	// MemoryOfSession is the memory for requests, in bytes, that a broker needs for each session that it allows. A session takes
	// some 400 bytes, and the nonces of its first requests take some 400 more.
	MemoryOfSession = 1 << 10
	// noncesOfSession is the number of nonces for each session.
	noncesOfSession = 8
	// noncesOfOne is the divisor for the nonces of one session: a session may have 1/noncesOfOne of the nonces of its socket.
	noncesOfOne = 4
)

const (
	// sweepTime is the longest time that the key of a session stays in memory after the session has expired.
	sweepTime = 10 * time.Second
	// keysOfChunk is the number of keys in a piece of memory.
	keysOfChunk = 512
	// stepOfVisit is the number of sessions that are visited before waiting calls go on. One step takes some 0.1 ms.
	stepOfVisit = 256
)

// Errors of a Store.
var (
	// ErrRefused means that a request does not belong to a session of the caller, does not
	// authenticate, is too old or too new, or was opened before. Nobody can find out which.
	ErrRefused = errors.New("session: the request is refused")
	// ErrEnded means that the caller has no such session, or that it has ended or may seal no more.
	ErrEnded = errors.New("session: there is no such session")
	// ErrFull means that the callers of the socket have as many sessions as they may.
	ErrFull = errors.New("session: there is no room for a session")
	// ErrBusy means that a request is authentic, and that there is no room to remember its nonce.
	ErrBusy = errors.New("session: there is no room for the nonce of a request")
)

// Owner is who may use a session.
type Owner struct {
	Caller callers.Caller
	// Socket is the name of the caller whose socket it is, empty if there is one for all.
	Socket  string
	Profile string
}

// Store has the sessions of a broker: in its memory, or where the broker shares them. It is safe for concurrent use.
type Store struct {
	now func() time.Time
	// every is the time between two sweeps.
	every    time.Duration
	unlocked func(error)
	// decoy is the key for requests of unknown sessions. None of them opens with it.
	decoy [keySize]byte
	// nobody is the session that refuses requests of unknown sessions.
	nobody *session
	// gcm returns the AEAD for a key.
	gcm func(key []byte) (cipher.AEAD, error)
	// shared is nil if the broker does not share sessions.
	shared Shared

	mu     sync.Mutex
	closed bool
	// mostSessions and mostNonces are the maximum numbers of sessions and nonces of the callers
	// of one socket.
	mostSessions, mostNonces int
	sessions                 map[string]*session
	// all has the same sessions as a slice, so that they can be visited step by step.
	all     []*session
	shares  map[string]*share
	memory  []lockedmemory.Memory
	sweeper *time.Timer // nil if there are no sessions
}

// NewStore returns an empty store. It calls unlocked once if the memory for keys may be swapped or be
// in a core dump.
func NewStore(unlocked func(error)) *Store {
	var once sync.Once
	s := &Store{
		now: time.Now, every: sweepTime, unlocked: func(err error) { once.Do(func() { unlocked(err) }) },
		nobody: &session{ended: true, window: profile.MaxSessionWindow, share: &share{}}, gcm: newGCM,
		mostSessions: MaxSessions, mostNonces: maxNonces, sessions: map[string]*session{}, shares: map[string]*share{},
	}
	_, _ = rand.Read(s.decoy[:]) // it never returns an error
	return s
}

// Limit sets the limits by the memory that a broker has for requests, in bytes, and gives each of a
// number of sockets an equal part of them. There are MaxSessions and maxNonces at most.
func (s *Store) Limit(memory int64, sockets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sessions := int(min(memory/MemoryOfSession, MaxSessions))
	s.mostSessions = max(1, sessions/sockets)
	s.mostNonces = max(noncesOfOne, noncesOfSession*sessions/sockets)
}

// add adds a session with its key, and returns whether there was room.
func (s *Store) add(new *session, key []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.shares[new.owner.Socket]
	if of == nil {
		of = &share{}
		s.shares[new.owner.Socket] = of
	}
	if s.closed || of.sessions >= s.mostSessions {
		return ErrFull
	}
	slot, ok := s.takeSlot()
	if !ok {
		return ErrFull
	}
	copy(s.slot(slot), key)
	new.key, new.share = slot, of
	of.sessions++
	s.sessions[new.id] = new
	new.index = len(s.all)
	s.all = append(s.all, new)
	if s.sweeper == nil {
		s.sweeper = time.AfterFunc(s.every, s.sweep)
	}
	return nil
}

// takeSlot takes a slot for a key.
func (s *Store) takeSlot() (int, bool) {
	for i := range s.memory {
		if slot, ok := s.memory[i].Take(); ok {
			return i*keysOfChunk + slot, true
		}
	}
	chunk, unlocked := lockedmemory.New(keysOfChunk, keySize)
	if unlocked != nil {
		s.unlocked(unlocked)
	}
	slot, ok := chunk.Take()
	if !ok {
		return 0, false
	}
	s.memory = append(s.memory, chunk)
	return (len(s.memory)-1)*keysOfChunk + slot, true
}

func (s *Store) slot(i int) []byte { return s.memory[i/keysOfChunk].Slot(i % keysOfChunk) }

// find returns a session of an owner, and copies its key. It returns nil if there is none, if it has
// expired, or if the profile does not allow it any more. In the last two cases it ends the session.
func (s *Store) find(owner Owner, policy *profile.SessionPolicy, id string, key *[keySize]byte) *session {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.sessions[id]
	if found == nil || found.owner != owner {
		return nil
	}
	if !found.allowed(policy, now) {
		s.endLocked(found)
		return nil
	}
	copy(key[:], s.slot(found.key))
	return found
}

// allowed reports whether a policy allows a session at a time.
func (s *session) allowed(policy *profile.SessionPolicy, now time.Time) bool {
	return policy != nil && policy.Allows(s.protocol) && policy.Shared() == (s.shared != nil) &&
		now.Before(s.expires) && now.Sub(s.began) < policy.MaxLifetime()
}

// endLocked ends a session and overwrites its key.
func (s *Store) endLocked(old *session) {
	if s.sessions[old.id] != old {
		return
	}
	delete(s.sessions, old.id)
	last := len(s.all) - 1
	s.all[old.index] = s.all[last]
	s.all[old.index].index = old.index
	s.all[last] = nil
	s.all = s.all[:last]
	s.memory[old.key/keysOfChunk].Free(old.key % keysOfChunk)
	old.end()
	if old.share.sessions--; old.share.sessions == 0 {
		delete(s.shares, old.owner.Socket)
	}
}

// end ends a session of an owner. It returns the version of the protocol, and reports false if there is
// no such session.
func (s *Store) end(owner Owner, id string) (algorithm.Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.sessions[id]
	if found == nil || found.owner != owner {
		return 0, false
	}
	s.endLocked(found)
	return found.protocol, true
}

// Keep ends the sessions that the profiles do not allow any more. Shared sessions end when they are used
// next. policyOf returns nil if the owner of a
// session may have none.
func (s *Store) Keep(policyOf func(Owner) *profile.SessionPolicy) {
	now := s.now()
	s.visit(func(each *session) {
		if !each.allowed(policyOf(each.owner), now) {
			s.endLocked(each)
		}
	})
	if s.shared != nil {
		s.shared.Forget()
	}
}

// visit calls f for each session that exists when visit begins and has not ended meanwhile. f may end the session. After each step
// visit lets waiting calls go on.
func (s *Store) visit(f func(*session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// When a session ends, the last session moves to its index. So visit goes from the last to the first.
	for i := len(s.all) - 1; i >= 0; i = min(i, len(s.all)) - 1 {
		f(s.all[i])
		if i%stepOfVisit == 0 {
			s.mu.Unlock()
			runtime.Gosched() // without this, the goroutine would take the mutex again at once
			s.mu.Lock()
		}
	}
}

// sweep ends the sessions that have expired, and forgets the nonces that have expired. If there has
// been no session since the last sweep, it gives the memory back.
func (s *Store) sweep() {
	now := s.now()
	if s.releaseUnused() {
		return
	}
	s.visit(func(each *session) {
		if now.Before(each.expires) {
			each.forget(now)
		} else {
			s.endLocked(each)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.sweeper = time.AfterFunc(s.every, s.sweep)
	}
}

// releaseUnused gives the memory back and reports true if there are no sessions.
func (s *Store) releaseUnused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) > 0 {
		return false
	}
	s.release()
	return true
}

// release gives the memory back. There are no sessions.
func (s *Store) release() {
	for i := range s.memory {
		s.memory[i].Close()
	}
	s.memory, s.all, s.sessions = nil, nil, map[string]*session{} // a new map, because a map never shrinks
	if s.sweeper != nil {
		s.sweeper.Stop()
		s.sweeper = nil
	}
}

// Close ends all sessions and gives the memory back. The store has no sessions any more. Shared sessions
// go on.
func (s *Store) Close() {
	if s.shared != nil {
		s.shared.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, each := range s.sessions {
		s.endLocked(each)
	}
	s.release()
}

// Stats says how many sessions and remembered nonces there are, and how many sessions the callers of
// one socket may have.
type Stats struct{ Sessions, Nonces, MostOfSocket int }

// Stats returns how many there are.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{Sessions: len(s.sessions), MostOfSocket: s.mostSessions}
	for _, each := range s.shares {
		stats.Nonces += int(each.nonces.Load())
	}
	return stats
}

// nonceLimit returns how many nonces the callers of one socket may have.
func (s *Store) nonceLimit() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.mostNonces)
}
