// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

var (
	requestBytesDescription = prometheus.NewDesc("crypto_broker_request_bytes_total",
		"Bytes of the messages of requests, by operation. Framing and TLS of connections do not count.", []string{"operation"}, nil)
	replyBytesDescription = prometheus.NewDesc("crypto_broker_reply_bytes_total",
		"Bytes of the messages of replies, by operation. Errors do not count.", []string{"operation"}, nil)
	connectionsDescription = prometheus.NewDesc("crypto_broker_connections",
		"Open connections to the socket of a container, by container. Connections of the session gateway do not count. The container is empty if all callers share a socket.", []string{"container"}, nil)
)

// traffic collects the bytes of messages and the connections of clients.
type traffic struct {
	requests, replies [profile.OperationCount]atomic.Uint64
	// connections is nil until a server serves.
	connections atomic.Pointer[func(yield func(container string, open int))]
}

// Transferred counts the bytes of the messages of a call. replied is 0 for a call without a reply.
func (m *Metrics) Transferred(op profile.Operation, requested, replied int) {
	m.traffic.requests[op].Add(uint64(requested)) //nolint:gosec // a size
	m.traffic.replies[op].Add(uint64(replied))    //nolint:gosec // a size
}

// ServeConnections sets the function that reports open connections. It calls yield once for each container of the pod, with the
// number of its connections. A later call of ServeConnections replaces the function.
func (m *Metrics) ServeConnections(each func(yield func(container string, open int))) {
	m.traffic.connections.Store(&each)
}

// Describe implements prometheus.Collector.
func (t *traffic) Describe(to chan<- *prometheus.Desc) {
	to <- requestBytesDescription
	to <- replyBytesDescription
	to <- connectionsDescription
}

// Collect implements prometheus.Collector.
func (t *traffic) Collect(to chan<- prometheus.Metric) {
	for op := range profile.OperationCount {
		name := profile.Operation(op).String()
		to <- prometheus.MustNewConstMetric(requestBytesDescription, prometheus.CounterValue, float64(t.requests[op].Load()), name)
		to <- prometheus.MustNewConstMetric(replyBytesDescription, prometheus.CounterValue, float64(t.replies[op].Load()), name)
	}
	if each := t.connections.Load(); each != nil {
		(*each)(func(container string, open int) {
			to <- prometheus.MustNewConstMetric(connectionsDescription, prometheus.GaugeValue, float64(open), container)
		})
	}
}
