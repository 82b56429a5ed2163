// SPDX-License-Identifier: Apache-2.0

package state

import "github.com/prometheus/client_golang/prometheus"

var _ prometheus.Collector = &Store{}

var (
	withheldDescription = prometheus.NewDesc(
		"crypto_broker_operator_profiles_withheld",
		"Profiles of a namespace that are not served because they are weaker than what was served before; a namespace without such profiles is not listed.",
		[]string{"namespace"}, nil)
	baselineDescription = prometheus.NewDesc(
		"crypto_broker_operator_baselines_missing",
		"1 for a namespace in which no set is written, because what it served before is not known and not all of its profiles are allowed; others are not listed.",
		[]string{"namespace"}, nil)
	heldDescription = prometheus.NewDesc(
		"crypto_broker_operator_sets_held",
		"1 for a namespace whose set stays as it is, because profiles of it went with their resource definition; others are not listed.",
		[]string{"namespace"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- withheldDescription
	descriptions <- baselineDescription
	descriptions <- heldDescription
}

// Collect implements prometheus.Collector. A namespace is listed only under the
// metrics that are not zero for it.
func (s *Store) Collect(metrics chan<- prometheus.Metric) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, known := range s.namespaces {
		gauge := func(description *prometheus.Desc, value int) {
			if value > 0 {
				metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(value), name)
			}
		}
		gauge(withheldDescription, known.Withheld)
		gauge(baselineDescription, oneIf(known.BaselineMissing))
		gauge(heldDescription, oneIf(known.HeldReason != ""))
	}
}

func oneIf(condition bool) int {
	if condition {
		return 1
	}
	return 0
}
