// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// Spans adds the numbers of exported and dropped spans to the metrics.
func (m *Metrics) Spans(tracer *tracing.Tracer) {
	m.registry.MustRegister(spans{
		tracer: tracer,
		exported: prometheus.NewDesc("crypto_broker_spans_exported_total",
			"Spans of sampled calls that were exported, by exporter.", []string{"exporter"}, nil),
		dropped: prometheus.NewDesc("crypto_broker_spans_dropped_total",
			"Spans of sampled calls that were dropped, by exporter and reason: too many spans waited (queue_full), or the export failed (export_failed).",
			[]string{"exporter", "reason"}, nil),
	})
}

// spans collects the counts of a tracer.
type spans struct {
	tracer            *tracing.Tracer
	exported, dropped *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (s spans) Describe(ch chan<- *prometheus.Desc) {
	ch <- s.exported
	ch <- s.dropped
}

// Collect implements prometheus.Collector.
func (s spans) Collect(ch chan<- prometheus.Metric) {
	count := func(desc *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
	}
	for _, c := range s.tracer.Counts() {
		count(s.exported, c.Exported, c.Exporter)
		count(s.dropped, c.Full, c.Exporter, "queue_full")
		count(s.dropped, c.Failed, c.Exporter, "export_failed")
	}
}
