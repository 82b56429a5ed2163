// SPDX-License-Identifier: Apache-2.0

package presence

import "github.com/prometheus/client_golang/prometheus"

var (
	missingDescription = prometheus.NewDesc(
		"crypto_broker_operator_pods_without_broker",
		"Pods that should have a broker and have none, by namespace. Restart their workloads.",
		[]string{"namespace"}, nil)
	outdatedDescription = prometheus.NewDesc(
		"crypto_broker_operator_pods_outdated",
		"Pods whose broker differs from the broker that a new pod would get, by namespace. Restart their workloads when it suits.",
		[]string{"namespace"}, nil)
)

var _ prometheus.Collector = &tally{}

// Describe implements prometheus.Collector.
func (t *tally) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- missingDescription
	descriptions <- outdatedDescription
}

// Collect implements prometheus.Collector. A namespace without such pods is not listed, and a
// deleted namespace leaves no series.
func (t *tally) Collect(metrics chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, ns := range t.namespaces {
		without, other := ns.numbers.missing(ns.byDefault()), ns.numbers[outdated]
		if without == 0 && other == 0 {
			continue
		}
		metrics <- prometheus.MustNewConstMetric(missingDescription, prometheus.GaugeValue, float64(without), name)
		metrics <- prometheus.MustNewConstMetric(outdatedDescription, prometheus.GaugeValue, float64(other), name)
	}
}
