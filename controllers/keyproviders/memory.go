// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory has an entry for each provider. It is safe for concurrent use.
type memory struct {
	mu  sync.Mutex
	all map[types.NamespacedName]remembered
}

// of returns the entry of a provider. It is empty for another provider of the same name.
func (m *memory) of(name types.NamespacedName, uid types.UID) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.all[name]; known.uid == uid {
		return known
	}
	return remembered{uid: uid}
}

func (m *memory) put(name types.NamespacedName, known remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[name] = known
}

func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, name)
}
