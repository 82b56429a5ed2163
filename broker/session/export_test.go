// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync/atomic"
	"testing"
	"time"
)

// UseShared makes all tests of stores run with replicas that share their sessions as well. prepare prepares a test, and returns a
// function that opens the shared sessions for one more broker.
func UseShared(name, section string, prepare func(t *testing.T) (open func(testing.TB) Shared)) {
	kinds[name] = func(t *testing.T) func(testing.TB) *replicas {
		open := prepare(t)
		return func(t testing.TB) *replicas {
			t.Helper()
			r := &replicas{section: section, ahead: make([]atomic.Int64, 2)}
			started := func(broker int) *Store {
				s, now := newStore(t)
				if r.clock == nil {
					r.clock = now
				}
				s.now = func() time.Time { return r.clock.read().Add(time.Duration(r.ahead[broker].Load())) }
				s.Share(open(t))
				return s
			}
			r.restart = func(broker int) {
				r.stores[broker].Close()
				r.stores[broker] = started(broker)
			}
			r.stores = []*Store{started(0), started(1)}
			return r
		}
	}
}
