// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"crypto/sha256"
	"sync"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// keptComparisons is how many comparisons are remembered.
const keptComparisons = 4096

// memo remembers the comparisons made last: a ClusterCryptoProfile that changes
// makes the same one in each of its namespaces. It is safe for concurrent use.
type memo struct {
	mu    sync.Mutex
	kept  map[[2 * sha256.Size]byte][]Weakening
	order [][2 * sha256.Size]byte // the oldest first
}

var comparisons = &memo{kept: map[[2 * sha256.Size]byte][]Weakening{}}

// compare is Compare. The result must not be changed.
func (m *memo) compare(before, after profile.Profile) []Weakening {
	var key [2 * sha256.Size]byte
	old, new := sha256.Sum256(Canonical(before)), sha256.Sum256(Canonical(after))
	copy(key[:], old[:])
	copy(key[sha256.Size:], new[:])
	m.mu.Lock()
	weakenings, ok := m.kept[key]
	m.mu.Unlock()
	if ok {
		return weakenings
	}
	weakenings = Compare(before, after)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.kept[key]; !ok {
		m.kept[key] = weakenings
		m.order = append(m.order, key)
	}
	for len(m.order) > keptComparisons {
		delete(m.kept, m.order[0])
		m.order = m.order[1:]
	}
	return weakenings
}
