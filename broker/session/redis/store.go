// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

// mostNonces is the maximum number of nonces that a session may have. They are forgotten when
// they leave the clock window.
const mostNonces = 1 << 16

// Options are what a Store needs.
type Options struct {
	Settings *Settings
	// Keys has the wrapping key. It may be nil if keys of sessions are in clear.
	Keys keys.Provider
	// Observe is called when Redis begins or ceases to serve, one call at a time. The error is nil in the
	// first case, and has no secret.
	Observe func(error)
	// Unlocked is called once if keys are in memory that may be swapped or be in a core dump.
	Unlocked func(error)
}

// Store has sessions in Redis.
type Store struct {
	connection *connection
	keys       keys.Provider
	recent     *recent
}

var _ session.Shared = (*Store)(nil)

// Open returns a store, and begins to connect. It does not wait for Redis.
func Open(o Options) (*Store, error) {
	if o.Settings.WrappingKey != "" && o.Keys == nil {
		return nil, fmt.Errorf("WrappingKey is %q, and the broker has no keys", o.Settings.WrappingKey)
	}
	var once sync.Once
	s := &Store{
		connection: newConnection(o.Settings, o.Observe), keys: o.Keys,
		recent: newRecent(func(err error) { once.Do(func() { o.Unlocked(err) }) }),
	}
	go func() {
		// The observer reports the error.
		_, _ = ask(context.Background(), s.connection, "", func(ctx context.Context, client rueidis.Client) (string, error) {
			return client.Do(ctx, client.B().Ping().Build()).ToString()
		})
	}()
	return s, nil
}

// parts is the number of parts of a caller's sessions. The last digit of the id chooses one. A
// part is on one server of a cluster, so that one script counts sessions and adds one.
const parts = 16

// partOf returns the number of the part of a session, 0 for a text that is no id.
func partOf(id string) uint64 {
	part, _ := strconv.ParseUint(id[max(0, len(id)-1):], parts, 0)
	return part
}

// names returns the names of a session and of its nonces. The braces make a cluster keep them on one server.
func names(id string) []string {
	name := "crypto-broker:{" + id[max(0, len(id)-1):] + "}:" + id
	return []string{name, name + ":nonces"}
}

// callerName returns the name of one part of the sessions of a caller. Applications that have their own users in Redis are
// different callers.
func (s *Store) callerName(id string, o session.Owner) string {
	return fmt.Sprintf("crypto-broker:{%s}:caller:%q:%q:%q:%d:%d", id[max(0, len(id)-1):], s.connection.settings.User, o.Socket, o.Caller.Container, o.Caller.UID, o.Caller.GID)
}

// run runs a script about a session, and returns its answer.
func (s *Store) run(ctx context.Context, id string, which *rueidis.Lua, names []string, arguments ...string) (answer string, err error) {
	answer, err = ask(ctx, s.connection, id, func(ctx context.Context, client rueidis.Client) (string, error) {
		return which.Exec(ctx, client, names, arguments).ToString()
	})
	if answer == done {
		s.connection.tell(serves, nil)
	}
	return answer, err
}

// Add implements session.Shared.
func (s *Store) Add(ctx context.Context, r *session.Record, key []byte) error {
	record, err := encode(r)
	if err != nil {
		return err
	}
	wrapped, version, err := s.wrap(ctx, key, record)
	if err != nil {
		return s.keyError(ctx, err)
	}
	defer clear(wrapped) // with KeysInClear, these bytes are the key itself
	lifetime := strconv.FormatInt(r.Expires.Sub(r.Began).Milliseconds(), 10)
	answer, err := s.run(ctx, r.ID, beginScript, append(names(r.ID), s.callerName(r.ID, r.Owner)), string(record), string(wrapped), version, lifetime,
		r.ID, strconv.FormatInt(r.Began.UnixMilli(), 10), strconv.FormatInt(r.Expires.UnixMilli(), 10), strconv.Itoa(s.connection.settings.MaxSessions/parts))
	switch {
	case err != nil || answer == done:
		return err
	case answer == full:
		return session.ErrFull
	default:
		s.connection.tell(isUnfit, fmt.Errorf("found maxmemory-policy %s, expected noeviction: Redis would end sessions at any time", answer))
		return session.ErrUnavailable
	}
}

// keyError returns the error of a call that could not use the wrapping key.
func (s *Store) keyError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.connection.tell(isUnfit, err)
	return session.ErrUnavailable
}

// Find implements session.Shared.
func (s *Store) Find(ctx context.Context, id string, key []byte) (*session.Record, error) {
	if found := s.recent.get(id, key); found != nil {
		return found, nil
	}
	fields, err := ask(ctx, s.connection, id, func(ctx context.Context, client rueidis.Client) ([]string, error) {
		return client.Do(ctx, client.B().Hmget().Key(names(id)[0]).Field("record", "key", "version").Build()).AsStrSlice()
	})
	if err != nil || len(fields) != 3 || fields[0] == "" {
		return nil, err
	}
	record := []byte(fields[0])
	found, err := decode(record, id)
	if err != nil {
		return nil, nil
	}
	unwrapped, err := s.unwrap(ctx, []byte(fields[1]), fields[2], record)
	switch {
	case errors.Is(err, errForeign):
		return nil, nil
	case err != nil:
		return nil, s.keyError(ctx, err)
	}
	defer clear(unwrapped)
	copy(key, unwrapped)
	s.recent.add(found, unwrapped)
	return found, nil
}

// Accept implements session.Shared.
func (s *Store) Accept(ctx context.Context, id string, a session.Acceptance) error {
	answer, err := s.run(ctx, id, acceptScript, names(id), string(a.Nonce[:]), strconv.FormatInt(a.Timestamp, 10), strconv.FormatInt(a.Floor, 10),
		strconv.FormatUint(a.MostMessages, 10), strconv.Itoa(mostNonces))
	switch {
	case err != nil:
		return err
	case answer == done:
		return nil
	case answer == busy:
		return session.ErrBusy
	case answer == ended:
		s.recent.drop(id)
	}
	return session.ErrRefused
}

// CountReply implements session.Shared.
func (s *Store) CountReply(ctx context.Context, id string, most uint64) error {
	answer, err := s.run(ctx, id, replyScript, names(id), strconv.FormatUint(most, 10))
	if err == nil && answer != done {
		err = session.ErrEnded
	}
	return err
}

// Check implements session.Shared.
func (s *Store) Check(ctx context.Context, id string) error {
	count, err := ask(ctx, s.connection, id, func(ctx context.Context, client rueidis.Client) (int64, error) {
		return client.Do(ctx, client.B().Exists().Key(names(id)[0]).Build()).AsInt64()
	})
	if err == nil && count == 0 {
		s.recent.drop(id)
	}
	return err
}

// End implements session.Shared.
func (s *Store) End(ctx context.Context, id string, owner session.Owner) error {
	s.recent.drop(id)
	_, err := s.run(ctx, id, endScript, append(names(id), s.callerName(id, owner)), id)
	return err
}

// Serves reports whether Redis has executed the last command.
func (s *Store) Serves() bool { return s.connection.serves() }

// Forget implements session.Shared.
func (s *Store) Forget() { s.recent.forget() }

// Close implements session.Shared.
func (s *Store) Close() {
	s.connection.close()
	s.recent.close()
}
