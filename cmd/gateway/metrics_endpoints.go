// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/providersource"
)

// maxMeasuredEndpoints is the maximum number of endpoints that have metrics of their own. Each
// has about ten series.
const maxMeasuredEndpoints = 2000

// endpointMetrics are the metrics of single endpoints. Their labels are the UID of the resource
// and the place of the endpoint in its list, because every pod may reach the status port. A metric
// of the operator has the names that belong to the UIDs.
type endpointMetrics struct {
	reachable, paused, connections, requests, durations, unmeasured *prometheus.Desc
}

func newEndpointMetrics() endpointMetrics {
	return endpointMetrics{
		reachable: prometheus.NewDesc("crypto_broker_gateway_key_endpoint_reachable",
			"Whether an endpoint of a key provider answered the last request, 1 or 0. There is no value before the first request.", []string{"uid", "endpoint"}, nil),
		paused: prometheus.NewDesc("crypto_broker_gateway_key_endpoint_paused",
			"Whether an endpoint of a key provider gets no requests because it failed three times in a row, 1 or 0.", []string{"uid", "endpoint"}, nil),
		connections: prometheus.NewDesc("crypto_broker_gateway_key_endpoint_connections",
			"Connections to an endpoint of a key provider, by state: busy with a request, or idle.", []string{"uid", "endpoint", "state"}, nil),
		requests: prometheus.NewDesc("crypto_broker_gateway_key_endpoint_requests_total",
			"Requests to an endpoint of a key provider, by result: served, unavailable, throttled or denied.", []string{"uid", "endpoint", "result"}, nil),
		durations: prometheus.NewDesc("crypto_broker_gateway_key_endpoint_request_duration_seconds",
			"Time of requests to an endpoint of a key provider that were served.", []string{"uid", "endpoint"}, nil),
		unmeasured: prometheus.NewDesc("crypto_broker_gateway_key_endpoints_without_metrics",
			"Endpoints of key providers that have no metrics of their own, because there are too many.", nil, nil),
	}
}

func (m *endpointMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.reachable, m.paused, m.connections, m.requests, m.durations, m.unmeasured} {
		ch <- desc
	}
}

func (m *endpointMetrics) collect(ch chan<- prometheus.Metric, providers []providersource.Endpoints) {
	measured, unmeasured := 0, 0
	for _, p := range providers {
		if measured+len(p.Status) > maxMeasuredEndpoints {
			unmeasured += len(p.Status)
			continue
		}
		measured += len(p.Status)
		for i := range p.Status {
			m.collectOne(ch, string(p.UID), strconv.Itoa(i), &p.Status[i])
		}
	}
	ch <- prometheus.MustNewConstMetric(m.unmeasured, prometheus.GaugeValue, float64(unmeasured))
}

func (m *endpointMetrics) collectOne(ch chan<- prometheus.Metric, uid, endpoint string, s *pool.Status) {
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), append([]string{uid, endpoint}, labels...)...)
	}
	one := map[bool]int{true: 1}
	if s.Reach != pool.Unknown {
		gauge(m.reachable, one[s.Reach == pool.Reachable])
	}
	gauge(m.paused, one[!s.Usable])
	gauge(m.connections, s.Busy, "busy")
	gauge(m.connections, s.Connections-s.Busy, "idle")
	for result, count := range map[string]uint64{
		"served": s.Requests.Served, "unavailable": s.Requests.Unavailable, "throttled": s.Requests.Throttled, "denied": s.Requests.Denied,
	} {
		ch <- prometheus.MustNewConstMetric(m.requests, prometheus.CounterValue, float64(count), uid, endpoint, result)
	}
	ch <- prometheus.MustNewConstSummary(m.durations, s.Requests.Served, s.Requests.Took.Seconds(), nil, uid, endpoint)
}
