// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Errors of sessions that brokers share.
var (
	// ErrNoShared means that the profile wants its sessions shared, and that the broker has no store for shared sessions.
	ErrNoShared = errors.New("session: the broker does not share sessions")
	// ErrUnavailable means that the store of shared sessions gave no answer or a wrong one. The call may have had its effect. A
	// further call may succeed.
	ErrUnavailable = errors.New("session: the shared sessions are not available")
	// ErrNoMemory means that the store of shared sessions is out of memory.
	ErrNoMemory = errors.New("session: there is no memory for shared sessions")
)

// Record is what does not change in a shared session, apart from its key.
type Record struct {
	ID       string
	Owner    Owner
	Protocol algorithm.Session
	// ClientID is empty in version 1 of the protocol.
	ClientID       string
	Began, Expires time.Time
	// Window is how far the time of a request may be from the broker's when the session begins. It does
	// not grow.
	Window time.Duration
}

// Acceptance is an authentic request within the clock window, with the limits that it counts against.
type Acceptance struct {
	// Nonce is unique within this session only.
	Nonce [16]byte
	// Timestamp is the time of the request, and Floor the earliest time that is within the window now. Both are in milliseconds
	// since 1970. A store may forget nonces of earlier times, provided that no broker accepts a request from before Floor any more.
	Timestamp, Floor int64
	// MostMessages is the maximum number of requests that the session may open.
	MostMessages uint64
}

// Shared has sessions that several brokers use. It is safe for concurrent use. Its errors are the errors of
// this package, and the error of the context if that ended first.
type Shared interface {
	// Add adds a session with its key. It does not keep the key. It returns ErrFull, ErrUnavailable and
	// ErrNoMemory.
	Add(ctx context.Context, r *Record, key []byte) error
	// Find returns a session, and copies its key. It returns nil if there is none, and ErrUnavailable. A
	// session that has ended may be found for a while.
	Find(ctx context.Context, id string, key []byte) (*Record, error)
	// Accept accepts a request once. It returns ErrRefused if the session has ended, the nonce was
	// used, or the time or the number of messages is not allowed, and ErrBusy, ErrUnavailable and ErrNoMemory.
	Accept(ctx context.Context, id string, a Acceptance) error
	// CountReply counts a reply. It returns ErrEnded if the session has ended or has sealed most replies,
	// and ErrUnavailable.
	CountReply(ctx context.Context, id string, most uint64) error
	// Check takes as long as Find of a session that the broker has not used before. It is called for
	// requests that are refused, so that nobody learns from the time whether there is a session. It
	// returns ErrUnavailable.
	Check(ctx context.Context, id string) error
	// End ends a session of an owner for all brokers. It returns ErrUnavailable.
	End(ctx context.Context, id string, owner Owner) error
	// Forget overwrites what this broker keeps of sessions. The sessions go on.
	Forget()
	// Close does what Forget does, and ends the connections.
	Close()
}

// Share sets the store for the sessions of profiles that want them shared. The caller has to call it before the first session begins.
func (s *Store) Share(shared Shared) { s.shared = shared }

// keep adds a session with its key to the store that the policy names.
func (s *Store) keep(ctx context.Context, policy *profile.SessionPolicy, made *session, key []byte) error {
	switch {
	case !policy.Shared():
		return s.add(made, key)
	case s.shared == nil:
		return ErrNoShared
	default:
		return s.shared.Add(ctx, &Record{
			ID: made.id, Owner: made.owner, Protocol: made.protocol, ClientID: made.clientID,
			Began: made.began, Expires: made.expires, Window: made.window,
		}, key)
	}
}

// lookup is find for the store that the policy names.
func (s *Store) lookup(ctx context.Context, owner Owner, policy *profile.SessionPolicy, id string, key *[keySize]byte) (*session, error) {
	switch {
	case !policy.Shared():
		return s.find(owner, policy, id, key), nil
	case s.shared == nil:
		return nil, ErrNoShared
	}
	if _, isID := idOfKid(kidPrefix + id); !isID {
		id = noID // so that only ids become part of names in the shared store
	}
	var itsKey [keySize]byte
	defer clear(itsKey[:])
	r, err := s.shared.Find(ctx, id, itsKey[:])
	switch {
	case err != nil || r == nil:
		return nil, err
	case r.Owner != owner:
		return nil, s.shared.Check(ctx, id)
	}
	found := &session{
		id: r.ID, owner: r.Owner, protocol: r.Protocol, clientID: r.ClientID, began: r.Began, expires: r.Expires, window: r.Window, shared: s.shared,
	}
	if !found.allowed(policy, s.now()) {
		return nil, s.shared.End(ctx, id, owner)
	}
	*key = itsKey
	return found, nil
}

// End ends a session of an owner, in the store that the policy names. It returns the version of the
// protocol, 0 if there is no such session, and the errors of [Shared].
func (s *Store) End(ctx context.Context, owner Owner, policy *profile.SessionPolicy, id string) (algorithm.Session, error) {
	if !policy.Shared() {
		protocol, _ := s.end(owner, id)
		return protocol, nil
	}
	var key [keySize]byte
	defer clear(key[:])
	found, err := s.lookup(ctx, owner, policy, id, &key)
	if err != nil || found == nil {
		return 0, err
	}
	return found.protocol, s.shared.End(ctx, id, owner)
}

// acceptOnce accepts a message if it is in the time window and was not accepted before. It asks
// Redis if the session is stored there.
func (s *Store) acceptOnce(ctx context.Context, found *session, policy *profile.SessionPolicy, m *message) error {
	now := s.now()
	if m.native {
		return found.acceptNative(m, policy, now)
	}
	if found.shared == nil {
		return found.accept(m, policy, now, s.nonceLimit())
	}
	window := found.window.Milliseconds()
	if !found.isInWindow(m, policy, now) {
		return found.check(ctx)
	}
	return found.shared.Accept(ctx, found.id, Acceptance{
		Nonce: m.nonceID, Timestamp: m.timestamp, Floor: now.UnixMilli() - window, MostMessages: policy.Messages(),
	})
}

// isInWindow reports whether the time of a request is allowed.
func (s *session) isInWindow(m *message, policy *profile.SessionPolicy, now time.Time) bool {
	allowed := min(s.window, policy.Window()).Milliseconds()
	return m.timestamp >= now.UnixMilli()-allowed && m.timestamp <= now.UnixMilli()+allowed
}

// refuse returns the error of a request that is not authentic, or not of a known session. It takes the
// steps of acceptOnce before. found is nil if the session is not known, or if its store was already asked.
func (s *Store) refuse(ctx context.Context, found *session, policy *profile.SessionPolicy, m *message) error {
	if found != nil && found.shared != nil {
		return found.check(ctx)
	}
	if m.native {
		return s.nobody.acceptNative(m, policy, s.now())
	}
	return s.nobody.accept(m, policy, s.now(), s.nonceLimit())
}

// check asks the store of shared sessions for the session, and returns the error of a refused request.
func (s *session) check(ctx context.Context) error {
	if err := s.shared.Check(ctx, s.id); err != nil {
		return err
	}
	return ErrRefused
}

// mayReply is countReply for the store that the session is in. It returns ErrEnded if the session may
// seal no more.
func (s *session) mayReply(ctx context.Context, policy *profile.SessionPolicy) error {
	if s.shared != nil {
		return s.shared.CountReply(ctx, s.id, policy.Messages())
	}
	if !s.countReply(policy) {
		return ErrEnded
	}
	return nil
}
