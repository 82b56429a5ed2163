// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
)

// Stack combines providers into the provider of all keys. The id of a key is <provider>/<id>, or
// <id> for a key of the default provider. The id after the first slash may have more slashes.
type Stack struct {
	standard   Provider
	providers  atomic.Pointer[map[string]Provider]
	others     Provider
	generation atomic.Uint64
}

var _ Prompt = (*Stack)(nil)

// NewStack returns a stack with a default provider, which may be nil, and no others.
func NewStack(standard Provider) *Stack {
	s := &Stack{standard: standard}
	s.providers.Store(&map[string]Provider{})
	return s
}

// Use replaces the providers, by their names. It does not keep the map. The default provider
// stays.
func (s *Stack) Use(providers map[string]Provider) {
	next := maps.Clone(providers)
	s.providers.Store(&next)
	s.generation.Add(1)
}

// Generation returns the number of calls of Use. Cached values of a provider belong to one
// generation.
func (s *Stack) Generation() uint64 { return s.generation.Load() }

// Delegate sets the provider for the keys of all providers that the stack does not have. That
// provider gets the whole id and the use of the key. Delegate must be called before the first key
// is asked for.
func (s *Stack) Delegate(others Provider) { s.others = others }

// NoProviderError is the error of an id whose provider does not exist. It wraps
// [ErrUnusable].
type NoProviderError struct {
	// Provider is the name of the provider, or empty for the default provider.
	Provider string
}

// Error implements error.
func (e *NoProviderError) Error() string {
	if e.Provider == "" {
		return "keys: there is no default provider"
	}
	return fmt.Sprintf("keys: there is no provider %q", e.Provider)
}

// Unwrap returns ErrUnusable.
func (e *NoProviderError) Unwrap() error { return ErrUnusable }

// SplitID returns the two parts of an id. provider is empty for the default provider, which
// then has the whole id.
func SplitID(id string) (provider, rest string) {
	if provider, rest, found := strings.Cut(id, "/"); found && provider != "" {
		return provider, rest
	}
	return "", id
}

// Key implements Provider. The key has the id without the provider, unless it comes from the
// provider of Delegate.
func (s *Stack) Key(ctx context.Context, name Name) (*Key, error) {
	provider, name, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return provider.Key(ctx, name)
}

// KeyNow implements Prompt. A provider that does not implement Prompt has its keys in memory.
func (s *Stack) KeyNow(name Name) (*Key, error) {
	provider, name, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if prompt, ok := provider.(Prompt); ok {
		return prompt.KeyNow(name)
	}
	return provider.Key(context.Background(), name)
}

// find returns the provider of a key, and the name that the provider knows the key by.
func (s *Stack) find(name Name) (Provider, Name, error) {
	provider, id := SplitID(name.ID)
	found := s.standard
	if provider != "" {
		found = (*s.providers.Load())[provider]
		if found == nil && s.others != nil {
			return s.others, name, nil
		}
	}
	if found == nil {
		return nil, Name{}, &NoProviderError{provider}
	}
	return found, name.At(id), nil
}
