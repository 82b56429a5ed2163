// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
)

// peerMetrics are the metrics of the peers of a key access service. The configuration has the peers, so there are few.
type peerMetrics struct {
	peers     *federation.Peers
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	usable    *prometheus.Desc
}

func newPeerMetrics() *peerMetrics {
	return &peerMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crypto_broker_gateway_key_access_peer_requests_total",
			Help: "Requests for data keys to other key access services, by peer and how they ended: answered, failed, late, refused, busy, not asked, or ended because nobody waited any more.",
		}, []string{"peer", "result"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "crypto_broker_gateway_key_access_peer_request_duration_seconds",
			Help:    "Time from the start of a request to another key access service to its reply, by peer. Only requests that were answered count.",
			Buckets: durationBuckets,
		}, []string{"peer"}),
		usable: prometheus.NewDesc("crypto_broker_gateway_key_access_peer_usable",
			"Whether another key access service gets requests, 1 or 0. One that has failed lately does not.", []string{"peer"}, nil),
	}
}

// observe counts a request to a peer.
func (m *peerMetrics) observe(peer string, ended federation.Ending, took time.Duration) {
	m.requests.WithLabelValues(peer, string(ended)).Inc()
	if ended == federation.Answered {
		m.durations.WithLabelValues(peer).Observe(took.Seconds())
	}
}

// Describe implements prometheus.Collector.
func (m *peerMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.usable }

// Collect implements prometheus.Collector.
func (m *peerMetrics) Collect(ch chan<- prometheus.Metric) {
	for peer, usable := range m.peers.Usable() {
		value := 0.0
		if usable {
			value = 1
		}
		ch <- prometheus.MustNewConstMetric(m.usable, prometheus.GaugeValue, value, peer)
	}
}
