// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

const (
	// sharedText is the size in bytes from which texts of ConfigMaps are shared. Signatures
	// are smaller, and no two are equal.
	sharedText = 1 << 10
	// keptTexts is the maximum number of texts that are remembered, the last ones that were used.
	keptTexts = 32
)

// ShareTexts returns the transform of the cache of ConfigMaps. ConfigMaps with the same set share
// its text in memory, because all namespaces without CryptoProfiles have the same set. ConfigMaps
// with no other labels than the operator's share them. It also drops managedFields, as
// DefaultTransform does.
func ShareTexts() func(object any) (any, error) {
	var texts recentTexts
	return func(object any) (any, error) {
		if found, ok := object.(*corev1.ConfigMap); ok {
			found.ManagedFields = nil
			if maps.Equal(found.Labels, configMapLabels) {
				found.Labels = configMapLabels
			}
			texts.shareAll(found.Data)
			texts.shareAll(found.Annotations)
		}
		return object, nil
	}
}

// recentTexts are texts that were used lately, the last one first. It is safe for concurrent
// use.
type recentTexts struct {
	mu   sync.Mutex
	kept []string
}

func (r *recentTexts) shareAll(texts map[string]string) {
	for key, text := range texts {
		if len(text) >= sharedText {
			texts[key] = r.share(text)
		}
	}
}

// share returns an equal text, which is the same one while it is remembered.
func (r *recentTexts) share(text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.kept, text); i >= 0 {
		text = r.kept[i]
		r.kept = slices.Delete(r.kept, i, i+1)
	} else if len(r.kept) == keptTexts {
		r.kept = r.kept[:keptTexts-1]
	}
	r.kept = slices.Insert(r.kept, 0, text)
	return text
}
