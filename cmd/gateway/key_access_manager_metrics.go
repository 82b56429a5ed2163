// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// keyManagerMetrics are the metrics of gateway key-access about key managers, and about the data keys that they have unwrapped. They
// are collected when somebody asks. The names of providers are those of the configuration.
type keyManagerMetrics struct {
	managers *keyManagers

	lookups, kept, requests, durations, connections *prometheus.Desc
}

func newKeyManagerMetrics(registry *prometheus.Registry, managers *keyManagers) {
	registry.MustRegister(&keyManagerMetrics{
		managers:    managers,
		lookups:     prometheus.NewDesc("crypto_broker_gateway_key_access_data_key_lookups_total", "Lookups of data keys that a key manager has unwrapped within the last minute, by result: hit, miss if the key manager was asked, or coalesced if another request was asking it for the same.", []string{"result"}, nil),
		kept:        prometheus.NewDesc("crypto_broker_gateway_key_access_data_keys_kept", "Data keys that a key manager has unwrapped and that are kept in memory.", nil, nil),
		requests:    prometheus.NewDesc("crypto_broker_gateway_key_access_key_manager_requests_total", "Requests to key managers, by key provider and result: served, unavailable, throttled or denied.", []string{"provider", "result"}, nil),
		durations:   prometheus.NewDesc("crypto_broker_gateway_key_access_key_manager_request_duration_seconds", "Time of requests to key managers that were served, by key provider.", []string{"provider"}, nil),
		connections: prometheus.NewDesc("crypto_broker_gateway_key_access_key_manager_connections", "Connections to key managers, by key provider and state: busy with a request, or idle.", []string{"provider", "state"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (m *keyManagerMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.lookups, m.kept, m.requests, m.durations, m.connections} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *keyManagerMetrics) Collect(ch chan<- prometheus.Metric) {
	counter := func(desc *prometheus.Desc, value uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	if kept := m.managers.kept(); kept != nil {
		stats := kept.Stats()
		counter(m.lookups, stats.Hits, "hit")
		counter(m.lookups, stats.Misses, "miss")
		counter(m.lookups, stats.Coalesced, "coalesced")
		gauge(m.kept, stats.Entries)
	}
	for provider, endpoints := range m.managers.status() {
		var served, unavailable, throttled, denied uint64
		var took time.Duration
		busy, open := 0, 0
		for i := range endpoints {
			s := &endpoints[i]
			served, unavailable, throttled, denied = served+s.Requests.Served, unavailable+s.Requests.Unavailable, throttled+s.Requests.Throttled, denied+s.Requests.Denied
			took, busy, open = took+s.Requests.Took, busy+s.Busy, open+s.Connections
		}
		counter(m.requests, served, provider, "served")
		counter(m.requests, unavailable, provider, "unavailable")
		counter(m.requests, throttled, provider, "throttled")
		counter(m.requests, denied, provider, "denied")
		ch <- prometheus.MustNewConstSummary(m.durations, served, took.Seconds(), nil, provider)
		gauge(m.connections, busy, provider, "busy")
		gauge(m.connections, open-busy, provider, "idle")
	}
}
