// SPDX-License-Identifier: Apache-2.0

package state

import "k8s.io/apimachinery/pkg/util/resourceversion"

// IsBehind reports whether an object that the cache has is older than the
// operator's own last write. found is its resource version, empty if the cache
// has no object. written is the resource version of the write, empty if the cache
// is known to have it.
func IsBehind(found, written string) bool {
	if written == "" {
		return false
	}
	if found == "" {
		return true
	}
	// If the versions cannot be compared, which no API server should cause, use the cache.
	order, err := resourceversion.CompareResourceVersion(found, written)
	return err == nil && order < 0
}
