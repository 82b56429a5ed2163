// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/broker/session"
)

var (
	sessionsDescription = prometheus.NewDesc("crypto_broker_sessions",
		"Encrypted sessions that have not ended.", nil, nil)
	sessionLimitDescription = prometheus.NewDesc("crypto_broker_session_limit",
		"Sessions that the callers of one socket may have.", nil, nil)
	noncesDescription = prometheus.NewDesc("crypto_broker_session_nonces",
		"Nonces of requests that are remembered, so that no request is opened twice.", nil, nil)
)

// sessions collects the counters of the store of sessions.
type sessions struct{ stats func() session.Stats }

// ServeSessions adds the metrics of the store of sessions. It is called once at most.
func (m *Metrics) ServeSessions(stats func() session.Stats) { m.registry.MustRegister(sessions{stats}) }

// ServeSharedSessions adds the metric of sessions that brokers share. It is called once at most.
func (m *Metrics) ServeSharedSessions(serves func() bool) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "crypto_broker_session_redis_up",
		Help: "Whether sessions in Redis were available when the broker last used them (1) or not (0).",
	}, func() float64 {
		if serves() {
			return 1
		}
		return 0
	}))
}

// Describe implements prometheus.Collector.
func (sessions) Describe(to chan<- *prometheus.Desc) {
	to <- sessionsDescription
	to <- sessionLimitDescription
	to <- noncesDescription
}

// Collect implements prometheus.Collector.
func (s sessions) Collect(to chan<- prometheus.Metric) {
	now := s.stats()
	to <- prometheus.MustNewConstMetric(sessionsDescription, prometheus.GaugeValue, float64(now.Sessions))
	to <- prometheus.MustNewConstMetric(sessionLimitDescription, prometheus.GaugeValue, float64(now.MostOfSocket))
	to <- prometheus.MustNewConstMetric(noncesDescription, prometheus.GaugeValue, float64(now.Nonces))
}
