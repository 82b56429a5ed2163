// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Provider finds keys by their ids. It is safe for concurrent use.
type Provider interface {
	// Key returns the key with an id. The error is ErrNotFound if there is no such key,
	// ErrUnusable if the key cannot be used, the error of ctx if ctx ends, or an error that
	// wraps ErrUnavailable if the provider cannot answer.
	Key(ctx context.Context, id string) (*Key, error)
}

var (
	// ErrNotFound means that the provider has no key with the id.
	ErrNotFound = errors.New("keys: there is no key with this id")

	// ErrUnusable means that the provider has the key, but the key is not valid. The log of
	// the broker says why.
	ErrUnusable = errors.New("keys: the key cannot be used")

	// ErrUnavailable means that the provider cannot be reached or read. Another try may
	// succeed.
	ErrUnavailable = errors.New("keys: the provider is not available")

	// ErrDenied means that the provider does not let the broker use the key.
	ErrDenied = errors.New("keys: the provider denies the use of the key")
)

// MaxIDLength is the longest id of a key, in bytes. [profile.ValidKeyID] says which ids are
// valid. A provider may allow fewer ids.
const MaxIDLength = profile.MaxKeyIDLength
