// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// replicas are brokers that have the same sessions.
type replicas struct {
	stores []*Store
	clock  *clock
	// ahead is how far the clock of each broker is ahead of the common clock, in nanoseconds. It is empty if there is only one broker.
	ahead []atomic.Int64
	// section is the additional text for the section of profiles.
	section string
	// restart ends a broker and starts another one in its place. It does nothing if the broker keeps sessions in its own memory,
	// because they would end.
	restart func(broker int)
}

// any returns any of the brokers.
func (r *replicas) any() *Store { return r.stores[rand.IntN(len(r.stores))] }

func (r *replicas) policy(t testing.TB, more string) *profile.SessionPolicy {
	t.Helper()
	return policy(t, r.section+more)
}

func (r *replicas) sweep() {
	for _, each := range r.stores {
		each.sweep()
	}
}

// kinds are the stores that tests run with, by name. Each function prepares a test, and returns a function that starts brokers.
var kinds = map[string]func(t *testing.T) (start func(testing.TB) *replicas){
	"in memory": func(*testing.T) func(testing.TB) *replicas {
		return func(t testing.TB) *replicas {
			t.Helper()
			s, now := newStore(t)
			return &replicas{stores: []*Store{s}, clock: now, restart: func(int) {}}
		}
	},
}

func eachStore(t *testing.T, test func(t *testing.T, start func(testing.TB) *replicas)) {
	t.Helper()
	for name, prepare := range kinds {
		t.Run(name, func(t *testing.T) { test(t, prepare(t)) })
	}
}
