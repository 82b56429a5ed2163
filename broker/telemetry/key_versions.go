// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxKeyVersions is the maximum number of versions of keys that a broker counts separately.
	maxKeyVersions = 128
	// otherVersions is the label of further versions and of their keys. No key has an id with a
	// space.
	otherVersions = "all others"
)

var keyVersionsDescription = prometheus.NewDesc("crypto_broker_key_version_reads_total",
	"Data keys that were unwrapped and data that was decrypted, by the version of the key in its key manager. Rewrapped keys do not count.",
	[]string{"key", "version"}, nil)

// keyVersion is a version of a key of a key manager.
type keyVersion struct{ key, version string }

// keyVersions counts the decrypted data and unwrapped data keys of each version of a key.
type keyVersions struct {
	mu    sync.RWMutex
	reads map[keyVersion]*atomic.Uint64
	other atomic.Uint64
}

// ReadWith counts data that was decrypted, or a data key that was unwrapped, with a version of a
// key. Keys without versions have an empty version, and are not counted.
func (m *Metrics) ReadWith(key, version string) {
	if version == "" {
		return
	}
	m.keyVersions.count(keyVersion{key, version}).Add(1)
}

func (v *keyVersions) count(of keyVersion) *atomic.Uint64 {
	v.mu.RLock()
	count := v.reads[of]
	v.mu.RUnlock()
	if count != nil {
		return count
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if count = v.reads[of]; count != nil {
		return count
	}
	if len(v.reads) >= maxKeyVersions {
		return &v.other
	}
	count = &atomic.Uint64{}
	v.reads[keyVersion{strings.Clone(of.key), strings.Clone(of.version)}] = count // so that the request is not kept
	return count
}

// Describe implements prometheus.Collector.
func (*keyVersions) Describe(to chan<- *prometheus.Desc) { to <- keyVersionsDescription }

// Collect implements prometheus.Collector.
func (v *keyVersions) Collect(to chan<- prometheus.Metric) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for of, count := range v.reads {
		to <- prometheus.MustNewConstMetric(keyVersionsDescription, prometheus.CounterValue, float64(count.Load()), of.key, of.version)
	}
	if other := v.other.Load(); other > 0 {
		to <- prometheus.MustNewConstMetric(keyVersionsDescription, prometheus.CounterValue, float64(other), otherVersions, otherVersions)
	}
}
