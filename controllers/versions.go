// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// versions remembers the resource versions of the operator's own last writes,
// to tell a cache that has not seen them yet. It is safe for concurrent use.
type versions struct {
	mu      sync.Mutex
	written map[types.NamespacedName]string
}

func newVersions() *versions { return &versions{written: map[types.NamespacedName]string{}} }

// wrote remembers the version that a write returned.
func (v *versions) wrote(name types.NamespacedName, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.written[name] = version
}

// forget drops what is remembered of an object.
func (v *versions) forget(name types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.written, name)
}

// pending is true while the version found is older than the last write; an empty
// one stands for an object that was not found. Once it is not, the write is
// forgotten.
func (v *versions) pending(name types.NamespacedName, found string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	written, ok := v.written[name]
	if !ok {
		return false
	}
	// Versions that can't be compared, which no API server should give, leave
	// only one choice: to believe the cache.
	if order, err := resourceversion.CompareResourceVersion(found, written); found == "" || err == nil && order < 0 {
		return true
	}
	delete(v.written, name)
	return false
}
