// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

var accessDescription = prometheus.NewDesc(
	"crypto_broker_operator_key_access_objects",
	"Policies and peers of key access services, by kind and by the reason of their condition Ready: InUse; HeldBack or Invalid, because a service keeps the last good ones; NotRead or NoService, if it is not known.",
	[]string{"kind", "reason"}, nil)

// accessReasons are the reasons of the condition Ready of a policy or a peer.
var accessReasons = []string{v1alpha1.ReasonInUse, v1alpha1.ReasonHeldBack, v1alpha1.ReasonInvalid, v1alpha1.ReasonNotRead, v1alpha1.ReasonNoService}

// accessMetrics has the reason of each object of one kind, until the object is gone.
type accessMetrics struct {
	kind string
	mu   sync.Mutex
	all  map[types.NamespacedName]string
}

func (m *accessMetrics) set(name types.NamespacedName, status *v1alpha1.KeyAccessStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[name] = meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Reason
}

func (m *accessMetrics) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, name)
}

// bothAccessMetrics are the metrics of policies and the metrics of peers.
type bothAccessMetrics []*accessMetrics

// Describe implements prometheus.Collector.
func (bothAccessMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- accessDescription }

// Collect implements prometheus.Collector.
func (b bothAccessMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, m := range b {
		counts := map[string]int{}
		m.mu.Lock()
		for _, reason := range m.all {
			counts[reason]++
		}
		m.mu.Unlock()
		for _, reason := range accessReasons {
			ch <- prometheus.MustNewConstMetric(accessDescription, prometheus.GaugeValue, float64(counts[reason]), m.kind, reason)
		}
	}
}
