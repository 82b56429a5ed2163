// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

var servedDescription = prometheus.NewDesc("crypto_broker_served_requests_total",
	"Requests that were answered with OK, by operation, profile of the set that is served, algorithm and container that called. /uses has keys and users as well. The last two labels are empty for requests beyond the 256 uses that a broker counts, and the container also if all callers share a socket.",
	[]string{"operation", "profile", "algorithm", "container"}, nil)

// served collects the uses of profiles, without the values that have many variants: keys, users
// and formats.
type served struct{ metrics *Metrics }

// Describe implements prometheus.Collector.
func (served) Describe(to chan<- *prometheus.Desc) { to <- servedDescription }

// Collect implements prometheus.Collector.
func (s served) Collect(to chan<- prometheus.Metric) {
	type labels struct{ operation, profile, algorithm, container string }
	counts := map[labels]uint64{}
	all := s.metrics.Uses()
	for i := range all.Uses {
		u := &all.Uses[i]
		counts[labels{u.Operation, u.Profile, u.Algorithm, u.Container}] += u.Calls
	}
	for _, o := range all.Other {
		if o.Operation != "" {
			counts[labels{operation: o.Operation, profile: o.Profile}] += o.Calls
		}
	}
	for l, n := range counts {
		to <- prometheus.MustNewConstMetric(servedDescription, prometheus.CounterValue, float64(n), l.operation, l.profile, l.algorithm, l.container)
	}
}
