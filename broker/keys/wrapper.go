// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"fmt"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
)

// LocalWrapper is a Wrapper that has its key in memory, so it does not wait.
type LocalWrapper interface {
	Wrapper
	// WrapsLocally does nothing. Its presence says that the key is in memory.
	WrapsLocally()
}

func isLocal(w Wrapper) bool {
	_, local := w.(LocalWrapper)
	return local
}

// localWrapper wraps with a key in memory.
type localWrapper struct {
	key  wrap.Wrapper
	kind algorithm.WrappingKey
}

var _ LocalWrapper = localWrapper{}

// wrapperOf returns a wrapper for a key pair or a public key, or nil if such a key does not wrap.
func wrapperOf[K interface {
	wrap.Wrapper
	Kind() algorithm.WrappingKey
}](key K, err error) Wrapper {
	if err != nil {
		return nil
	}
	return localWrapper{key, key.Kind()}
}

// WrapsLocally implements LocalWrapper.
func (w localWrapper) WrapsLocally() {}

// Algorithms implements Wrapper.
func (w localWrapper) Algorithms() (names []string) {
	for _, name := range algorithm.Wrappings() {
		if with, _ := algorithm.FindWrapping(name); with.Key() == w.kind {
			names = append(names, name)
		}
	}
	return names
}

// Wrap implements Wrapper.
func (w localWrapper) Wrap(_ context.Context, name string, dataKey, context []byte) ([]byte, error) {
	with, err := findWrapping(name)
	if err != nil {
		return nil, err
	}
	return w.key.Wrap(with, dataKey, context)
}

// Unwrap implements Wrapper.
func (w localWrapper) Unwrap(_ context.Context, name string, wrapped, context []byte) ([]byte, error) {
	with, err := findWrapping(name)
	if err != nil {
		return nil, err
	}
	key, unwraps := w.key.(wrap.Unwrapper)
	if !unwraps {
		return nil, fmt.Errorf("%w: it is a public key, which only wraps", ErrUnusable)
	}
	dataKey, err := key.Unwrap(with, wrapped, context)
	if errors.Is(err, wrap.ErrUnwrap) {
		return nil, ErrInvalidCiphertext
	}
	return dataKey, err
}

func findWrapping(name string) (algorithm.Wrapping, error) {
	with, known := algorithm.FindWrapping(name)
	if !known {
		return 0, fmt.Errorf("%w: there is no wrapping algorithm %q", ErrUnusable, name)
	}
	return with, nil
}
