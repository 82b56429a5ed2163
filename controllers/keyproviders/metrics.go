// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

var (
	readyDescription = prometheus.NewDesc(
		"crypto_broker_operator_key_provider_ready",
		"Whether a KeyProvider is ready, 1 or 0; a ClusterKeyProvider has no namespace. The metrics of the key gateway have the same uid.",
		[]string{"namespace", "name", "uid"}, nil)
	accessDescription = prometheus.NewDesc(
		"crypto_broker_operator_key_access_objects",
		"Policies and peers of key access services, by kind and by the reason of their condition Ready: InUse; HeldBack or Invalid, because a service keeps the last good ones; NotRead or NoService, if it is not known.",
		[]string{"kind", "reason"}, nil)
)

// providerMetrics has the metric of each provider of a memory.
type providerMetrics struct{ *memory }

// Describe implements prometheus.Collector.
func (providerMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- readyDescription }

// Collect implements prometheus.Collector.
func (m providerMetrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, known := range m.all {
		if known.ready.Status == "" {
			continue
		}
		value := 0.0
		if known.ready.Status == metav1.ConditionTrue {
			value = 1
		}
		ch <- prometheus.MustNewConstMetric(readyDescription, prometheus.GaugeValue, value, name.Namespace, name.Name, string(known.uid))
	}
}

// accessReasons are the reasons of the condition Ready of a policy or a peer.
var accessReasons = []string{v1alpha1.ReasonInUse, v1alpha1.ReasonHeldBack, v1alpha1.ReasonInvalid, v1alpha1.ReasonNotRead, v1alpha1.ReasonNoService}

// accessMetrics has the metrics of policies and of peers, by their kinds.
type accessMetrics map[string]*memory

// Describe implements prometheus.Collector.
func (accessMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- accessDescription }

// Collect implements prometheus.Collector.
func (m accessMetrics) Collect(ch chan<- prometheus.Metric) {
	for kind, memory := range m {
		counts := map[string]int{}
		memory.mu.Lock()
		for _, known := range memory.all {
			counts[known.ready.Reason]++
		}
		memory.mu.Unlock()
		for _, reason := range accessReasons {
			ch <- prometheus.MustNewConstMetric(accessDescription, prometheus.GaugeValue, float64(counts[reason]), kind, reason)
		}
	}
}
