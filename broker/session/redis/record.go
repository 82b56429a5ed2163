// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

// stored is a record as Redis has it. Times are in milliseconds since 1970. The wrapping of the key
// authenticates the bytes.
type stored struct {
	ID        string `json:"id"`
	Container string `json:"container,omitempty"`
	UID       uint32 `json:"uid"`
	GID       uint32 `json:"gid"`
	Known     bool   `json:"known"`
	Socket    string `json:"socket,omitempty"`
	Profile   string `json:"profile"`
	Protocol  string `json:"protocol"`
	ClientID  string `json:"client,omitempty"`
	Began     int64  `json:"began"`
	Expires   int64  `json:"expires"`
	Window    int64  `json:"window"`
}

func encode(r *session.Record) ([]byte, error) {
	return json.Marshal(&stored{
		ID: r.ID, Container: r.Owner.Caller.Container, UID: r.Owner.Caller.UID, GID: r.Owner.Caller.GID, Known: r.Owner.Caller.Known,
		Socket: r.Owner.Socket, Profile: r.Owner.Profile, Protocol: r.Protocol.String(), ClientID: r.ClientID,
		Began: r.Began.UnixMilli(), Expires: r.Expires.UnixMilli(), Window: r.Window.Milliseconds(),
	})
}

// errForeign means that what Redis has under the name of a session is not from a broker with the same
// settings. Such a session does not exist.
var errForeign = errors.New("a session is not from a broker with the same settings")

func decode(text []byte, id string) (*session.Record, error) {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, errForeign
	}
	protocol, known := algorithm.FindSession(s.Protocol)
	if !known || s.ID != id || s.Window <= 0 {
		return nil, errForeign
	}
	return &session.Record{
		ID: s.ID, Protocol: protocol, ClientID: s.ClientID,
		Owner: session.Owner{
			Caller: callers.Caller{Container: s.Container, UID: s.UID, GID: s.GID, Known: s.Known}, Socket: s.Socket, Profile: s.Profile,
		},
		Began: time.UnixMilli(s.Began), Expires: time.UnixMilli(s.Expires), Window: time.Duration(s.Window) * time.Millisecond,
	}, nil
}

// keySize is the size of the key of a session in bytes, and of the key that wraps it.
const keySize = 32

// wrapping is the algorithm that wraps keys of sessions, and binds them to their records.
var wrapping = algorithm.WrapAESGCM.String()

// wrap wraps the key of a session. It returns the version of the wrapping key.
func (s *Store) wrap(ctx context.Context, key, record []byte) (wrapped []byte, version string, err error) {
	if s.connection.settings.KeysInClear {
		return slices.Clone(key), "", nil
	}
	with, err := s.wrappingKey(ctx, "")
	if err != nil {
		return nil, "", err
	}
	wrapped, err = with.Wrapper().Wrap(ctx, wrapping, key, record)
	return wrapped, with.Version(), err
}

// unwrap returns the key of a session, which the caller overwrites.
func (s *Store) unwrap(ctx context.Context, wrapped []byte, version string, record []byte) ([]byte, error) {
	key := slices.Clone(wrapped)
	if !s.connection.settings.KeysInClear {
		with, err := s.wrappingKey(ctx, version)
		if err != nil {
			return nil, err
		}
		key, err = with.Wrapper().Unwrap(ctx, wrapping, wrapped, record)
		if errors.Is(err, keys.ErrInvalidCiphertext) {
			return nil, errForeign
		}
		if err != nil {
			return nil, err
		}
	}
	if len(key) != keySize {
		clear(key)
		return nil, errForeign
	}
	return key, nil
}

// wrappingKey returns the key that wraps, or an earlier version of it.
func (s *Store) wrappingKey(ctx context.Context, version string) (*keys.Key, error) {
	id := s.connection.settings.WrappingKey
	key, err := s.keys.Key(ctx, keys.Name{ID: id, Version: version, Use: keys.Use{Operation: profile.OpUnwrapKey}})
	if err != nil {
		return nil, fmt.Errorf("WrappingKey %q: %w", id, err)
	}
	wrapper := key.Wrapper()
	if wrapper == nil || !slices.Contains(wrapper.Algorithms(), wrapping) {
		return nil, fmt.Errorf("WrappingKey %q cannot wrap with %s, expected an AES key of 256 bits", id, wrapping)
	}
	if cipher := key.Cipher(ctx); cipher != nil && cipher.KeySize() != keySize {
		return nil, fmt.Errorf("WrappingKey %q has %d bits, expected an AES key of 256 bits", id, 8*cipher.KeySize())
	}
	return key, nil
}
