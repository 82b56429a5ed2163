// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

// A Ring is a set of keys with ids. It does not change.
type Ring struct {
	keys    map[string]wrapping.Key
	current map[wrapping.Algorithm]string
	managed bool
}

// Named is a key with its id.
type Named struct {
	ID  string
	Key wrapping.Key
}

// id matches an id: letters, digits, and . _ - inside.
var id = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$`)

// NewRing returns a ring of keys by id. current has the ids of current keys, at most one for each
// algorithm. An algorithm with a single key does not need one.
func NewRing(keys map[string]wrapping.Key, current []string) (*Ring, error) {
	if len(keys) == 0 {
		return nil, errors.New("found no key, expected a file such as rsa-1.key or rsa-1.ref")
	}
	ring := &Ring{keys: keys, current: map[wrapping.Algorithm]string{}}
	awaited := false
	for _, name := range current {
		key := keys[name]
		if key == nil {
			return nil, fmt.Errorf("current: found %.70q, expected the id of a key, which is the name of its file without .key or .ref", name)
		}
		if wrapping.WhyPending(key) != nil {
			awaited = true // its algorithm is not known yet
			continue
		}
		if other := ring.current[key.Algorithm()]; other != "" {
			return nil, fmt.Errorf("current: found %s and %s, which are both of the algorithm %s, expected one key of each", other, name, key.Algorithm())
		}
		ring.current[key.Algorithm()] = name
	}
	of := map[wrapping.Algorithm][]string{}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if _, ok := keys[name].(wrapping.Managed); ok {
			ring.managed = true
		}
		algorithm := keys[name].Algorithm()
		of[algorithm] = append(of[algorithm], name)
	}
	for _, algorithm := range wrapping.Algorithms {
		switch names := of[algorithm]; {
		case len(names) == 0 || ring.current[algorithm] != "":
		case len(names) == 1:
			ring.current[algorithm] = names[0]
		case awaited: // it may be of this algorithm
		default:
			return nil, fmt.Errorf("current: found no line for the algorithm %s, expected one of its keys: %v", algorithm, names)
		}
	}
	return ring, nil
}

// Current returns the current key of an algorithm, and reports whether there is one.
func (r *Ring) Current(algorithm wrapping.Algorithm) (Named, bool) {
	name, ok := r.current[algorithm]
	return Named{ID: name, Key: r.keys[name]}, ok
}

// Algorithms returns the algorithms that have keys, in the order of [wrapping.Algorithms].
func (r *Ring) Algorithms() []wrapping.Algorithm {
	var all []wrapping.Algorithm
	for _, algorithm := range wrapping.Algorithms {
		if _, ok := r.current[algorithm]; ok {
			all = append(all, algorithm)
		}
	}
	return all
}

// For returns the keys that may unwrap a data key: the one with the id, or all keys of the type if
// the id is empty, current keys first. A pending key may be of any type.
func (r *Ring) For(name string, kind wrapping.Type) []Named {
	if name != "" {
		if key := r.keys[name]; key != nil {
			return []Named{{name, key}}
		}
		return nil
	}
	var current, others []Named
	for _, name := range slices.Sorted(maps.Keys(r.keys)) {
		switch key := r.keys[name]; {
		case key.Algorithm().Type() != kind && wrapping.WhyPending(key) == nil:
		case r.current[key.Algorithm()] == name:
			current = append(current, Named{name, key})
		default:
			others = append(others, Named{name, key})
		}
	}
	return append(current, others...)
}

// Len returns the number of keys. Keys that are pending count.
func (r *Ring) Len() int { return len(r.keys) }

// Managed reports whether a key is in a key manager.
func (r *Ring) Managed() bool { return r.managed }

// Pending returns why keys that key managers have not given yet are not there, by their ids.
func (r *Ring) Pending() map[string]error {
	all := map[string]error{}
	for name, key := range r.keys {
		if why := wrapping.WhyPending(key); why != nil {
			all[name] = why
		}
	}
	return all
}
