// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Provider finds keys by their ids. It is safe for concurrent use.
type Provider interface {
	// Key returns the key of an id. The error is ErrNotFound where there is no
	// such key, ErrUnusable where there is one that cannot be used, that of ctx,
	// or one that wraps ErrUnavailable where the provider cannot tell.
	Key(ctx context.Context, id string) (*Key, error)
}

var (
	// ErrNotFound means that the provider has no key of the id.
	ErrNotFound = errors.New("keys: there is no key of this id")

	// ErrUnusable means that the provider has the key but something is wrong
	// with it. What it is has been said to the operator of the broker.
	ErrUnusable = errors.New("keys: the key cannot be used")

	// ErrUnavailable means that the provider cannot be reached or read.
	ErrUnavailable = errors.New("keys: the provider is not available")
)

// MaxIDLength is the longest id of a key, in bytes. Which ids are valid is said
// by profile.ValidKeyID; a provider may know fewer.
const MaxIDLength = profile.MaxKeyIDLength
