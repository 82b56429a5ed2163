// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

// memory has an entry for each object, a provider, a policy or a peer. It is safe for concurrent use.
type memory struct {
	mu  sync.Mutex
	all map[types.NamespacedName]remembered
}

func newMemory() *memory { return &memory{all: map[types.NamespacedName]remembered{}} }

// of returns the entry of an object. It is empty for another object of the same name.
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

// answers returns the memory of an object, and what each pod has answered about it. wait is how
// long to wait before the status may be written: until the cache has the last write, or until late
// pods have answered. It is 0 if the status may be written now, and negative if the object is
// being deleted, so that no write is needed.
func (m *memory) answers(p *poller, object client.Object) (known remembered, views []*providerreport.Provider, wait time.Duration) {
	if !object.GetDeletionTimestamp().IsZero() {
		return known, nil, -1
	}
	name := client.ObjectKeyFromObject(object)
	known = m.of(name, object.GetUID())
	if state.IsBehind(object.GetResourceVersion(), known.pendingVersion) {
		return known, nil, staleWait
	}
	views, silence := p.views(object.GetUID())
	wait = max(0, known.wait(object.GetGeneration(), views, silence, time.Now()))
	m.put(name, known)
	return known, views, wait
}

// write writes the status of an object, and remembers its resource version until the cache has it.
// It reports false if the object is gone.
func (m *memory) write(ctx context.Context, c client.Client, object client.Object, status any, known remembered) (bool, error) {
	before := object.GetResourceVersion()
	written, err := statuspatch.Write(ctx, c, object, status)
	if err != nil || !written {
		return false, err
	}
	if object.GetResourceVersion() != before {
		known.pendingVersion = object.GetResourceVersion()
		m.put(client.ObjectKeyFromObject(object), known)
	}
	return true, nil
}
