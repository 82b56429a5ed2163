// SPDX-License-Identifier: Apache-2.0

package kmsplugin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// Metrics are the metrics of a plugin. They implement prometheus.Collector.
type Metrics struct {
	plugin    *Plugin // set by New
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	healthy   *prometheus.Desc
}

// NewMetrics returns metrics for [Options]. buckets are the buckets of durations of calls, in
// seconds.
func NewMetrics(buckets []float64) *Metrics {
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crypto_broker_gateway_kms_requests_total",
			Help: "Requests of the API server to the KMS plugin that ended, by method and gRPC code.",
		}, []string{"method", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "crypto_broker_gateway_kms_request_duration_seconds",
			Help:    "Time from the start of a request of the API server to its reply, by method.",
			Buckets: buckets,
		}, []string{"method"}),
		healthy: prometheus.NewDesc("crypto_broker_gateway_kms_healthy",
			"Whether the last check of the KMS plugin wrapped and unwrapped with the key, 1 or 0. There is no value before the first check, and after a failed call until the next check.", nil, nil),
	}
}

// observe counts a call that has ended.
func (m *Metrics) observe(method string, code codes.Code, took time.Duration) {
	m.requests.WithLabelValues(method, code.String()).Inc()
	m.durations.WithLabelValues(method).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.requests.Describe(ch)
	m.durations.Describe(ch)
	ch <- m.healthy
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.requests.Collect(ch)
	m.durations.Collect(ch)
	healthy, known := m.plugin.Healthy()
	if !known {
		return
	}
	value := 0.0
	if healthy {
		value = 1
	}
	ch <- prometheus.MustNewConstMetric(m.healthy, prometheus.GaugeValue, value)
}
