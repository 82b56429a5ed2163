// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/kmsplugin"
)

// kmsMetrics are all metrics of gateway kms, in their own registry.
type kmsMetrics struct {
	plugin    *kmsplugin.Plugin
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	healthy   *prometheus.Desc
}

func newKMSMetrics() *kmsMetrics {
	m := &kmsMetrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crypto_broker_gateway_kms_requests_total",
			Help: "Requests of the API server to the KMS plugin that ended, by method and gRPC code.",
		}, []string{"method", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "crypto_broker_gateway_kms_request_duration_seconds",
			Help:    "Time from the start of a request of the API server to its reply, by method.",
			Buckets: durationBuckets,
		}, []string{"method"}),
		healthy: prometheus.NewDesc("crypto_broker_gateway_kms_healthy",
			"Whether the last check of the KMS plugin wrapped and unwrapped with the key, 1 or 0. There is no value before the first check, and after a failed call until the next check.", nil, nil),
	}
	m.registry.MustRegister(m, m.requests, m.durations)
	describeProgram(m.registry)
	return m
}

// observe counts a request that ended.
func (m *kmsMetrics) observe(method string, code codes.Code, took time.Duration) {
	m.requests.WithLabelValues(method, code.String()).Inc()
	m.durations.WithLabelValues(method).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (m *kmsMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.healthy }

// Collect implements prometheus.Collector.
func (m *kmsMetrics) Collect(ch chan<- prometheus.Metric) {
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
