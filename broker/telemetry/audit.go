// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/prometheus/client_golang/prometheus"

var auditDescription = prometheus.NewDesc("crypto_broker_audit_records_total",
	"Audit records, by result: written, or lost. Calls whose record was lost were answered, unless their profile requires the record.",
	[]string{"result"}, nil)

// auditRecords collects what became of audit records.
type auditRecords struct{ stats func() (written, lost uint64) }

// Audit adds the metrics of audit records. It is called once at most.
func (m *Metrics) Audit(stats func() (written, lost uint64)) {
	m.registry.MustRegister(auditRecords{stats})
}

// Describe implements prometheus.Collector.
func (auditRecords) Describe(to chan<- *prometheus.Desc) { to <- auditDescription }

// Collect implements prometheus.Collector.
func (a auditRecords) Collect(to chan<- prometheus.Metric) {
	written, lost := a.stats()
	to <- prometheus.MustNewConstMetric(auditDescription, prometheus.CounterValue, float64(written), "written")
	to <- prometheus.MustNewConstMetric(auditDescription, prometheus.CounterValue, float64(lost), "lost")
}
