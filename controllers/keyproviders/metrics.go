// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

var readyDescription = prometheus.NewDesc(
	"crypto_broker_operator_key_provider_ready",
	"Whether a KeyProvider is ready, 1 or 0; a ClusterKeyProvider has no namespace. The metrics of the key gateway have the same uid.",
	[]string{"namespace", "name", "uid"}, nil)

// metrics has the metric of each provider, until the provider is gone.
type metrics struct {
	mu  sync.Mutex
	all map[types.NamespacedName]ready
}

type ready struct {
	uid   types.UID
	value float64
}

func (m *metrics) set(name types.NamespacedName, uid types.UID, status *v1alpha1.KeyProviderStatus) {
	r := ready{uid: uid}
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		r.value = 1
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[name] = r
}

func (m *metrics) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, name)
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) { ch <- readyDescription }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, r := range m.all {
		ch <- prometheus.MustNewConstMetric(readyDescription, prometheus.GaugeValue, r.value, name.Namespace, name.Name, string(r.uid))
	}
}
