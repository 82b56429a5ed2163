// SPDX-License-Identifier: Apache-2.0

package auditlog

import "github.com/prometheus/client_golang/prometheus"

// Metrics returns a collector of the counter that description describes. The counter has one label, the result
// of audit records: written, or lost. stats is [audit.Log.Stats] of the log.
func Metrics(description *prometheus.Desc, stats func() (written, lost uint64)) prometheus.Collector {
	return records{description, stats}
}

type records struct {
	description *prometheus.Desc
	stats       func() (written, lost uint64)
}

// Describe implements prometheus.Collector.
func (r records) Describe(to chan<- *prometheus.Desc) { to <- r.description }

// Collect implements prometheus.Collector.
func (r records) Collect(to chan<- prometheus.Metric) {
	written, lost := r.stats()
	to <- prometheus.MustNewConstMetric(r.description, prometheus.CounterValue, float64(written), "written")
	to <- prometheus.MustNewConstMetric(r.description, prometheus.CounterValue, float64(lost), "lost")
}
