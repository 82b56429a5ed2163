// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// Name names a key of a provider.
type Name struct {
	// ID is the id of the key. A [Stack] gives its providers the id without their names.
	ID string
	// Version is one version of the key. It is empty for the version that new data is
	// protected with.
	Version string
	// Opens reports whether the key is for decrypting or unwrapping. Then a provider may ask for
	// the bytes of an AES key before it knows the kind of the key.
	Opens bool
	// Use is the purpose of the key. Only a provider that asks another service whether the key
	// may be used needs it, see [Stack.Delegate].
	Use Use
}

// At returns the name that a provider of keys knows a key by, with the id that the key has there. It
// is the same for all uses, so that the provider has one key with one count of random nonces.
func (n Name) At(id string) Name {
	return Name{ID: id, Version: n.Version, Opens: n.Version != "" && n.Use.Operation.Opens()}
}

// Use is the operation of a profile for which a key is needed.
type Use struct {
	Profile   string
	Operation profile.Operation
}

// Provider finds keys. It is safe for concurrent use.
//
// The errors of a provider and of the operations of its keys wrap one of the errors below, or
// are the error of the context if it has ended.
type Provider interface {
	// Key returns the key with a name.
	Key(ctx context.Context, name Name) (*Key, error)
}

// Creator is a provider that makes keys. Each call makes at most one key, even if it fails.
type Creator interface {
	// CreateAES makes an AES key of this many bits, which wraps and unwraps data keys.
	CreateAES(ctx context.Context, id string, bits int) error
	// Rotate makes a new version of a key, which new data is protected with from then on.
	Rotate(ctx context.Context, id string) error
}

var (
	// ErrNotFound means that the provider has no key, or no version of the key, with the name.
	ErrNotFound = errors.New("keys: there is no key with this id")

	// ErrUnusable means that the provider has the key, but the key is not valid or does not
	// support the operation. The log of the broker says why.
	ErrUnusable = errors.New("keys: the key cannot be used")

	// ErrInvalidCiphertext means that a key manager did not unwrap or decrypt what it was given.
	// The error does not say which part of it is wrong.
	ErrInvalidCiphertext = errors.New("keys: the ciphertext does not authenticate")

	// ErrUnavailable means that the provider cannot be reached or read. Another try may
	// succeed.
	ErrUnavailable = errors.New("keys: the provider is not available")

	// ErrThrottled means that the provider refuses requests because there are too many. A
	// later try may succeed.
	ErrThrottled = errors.New("keys: the provider has too many requests")

	// ErrDenied means that the provider does not let the broker use the key.
	ErrDenied = errors.New("keys: the provider denies the use of the key")
)

// Transient reports whether another try may succeed. Only such errors are about the state of a
// provider.
func Transient(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrThrottled) }

// maxIDLength is the longest id of a key, in bytes. [keyrules.ValidID] says which ids are
// valid. A provider may allow fewer ids.
const maxIDLength = keyrules.MaxIDLength

// ErrWouldWait is the error of KeyNow.
var ErrWouldWait = errors.New("keys: the provider has to be asked")

// Prompt is a provider that can return a key without waiting.
type Prompt interface {
	Provider
	// KeyNow returns a key without waiting. It returns ErrWouldWait if only Key can return it.
	KeyNow(name Name) (*Key, error)
}
