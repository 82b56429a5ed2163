// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/keyring"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/limit"
)

// keyAccessBuckets are the buckets of durations of requests, in seconds. The alert for slow requests needs the bucket of 200 ms.
var keyAccessBuckets = []float64{250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 200e-3, 300e-3, 500e-3, 1, 2.5, 5, 10, 30, 60}

// keyAccessMetrics are the metrics of gateway key-access about requests of clients and peers. It is the observer of the service. All
// values of labels are known before the first request.
type keyAccessMetrics struct {
	requests  map[keyAccessRequest]prometheus.Counter
	durations map[keyaccess.Source]prometheus.Observer
	dataKeys  map[keyaccess.Result]prometheus.Counter
	inFlight  prometheus.Gauge
	// These are collected when somebody asks.
	ring     func() *keyring.Ring
	verifier *caller.Verifier
	shedder  *limit.Shedder

	waiting, keys, lookups, signatures, fetches, proofs, proofLimit *prometheus.Desc
}

type keyAccessRequest struct {
	from    keyaccess.Source
	outcome keyaccess.Outcome
}

// newKeyAccessMetrics adds the metrics of a service to a registry.
func newKeyAccessMetrics(registry *prometheus.Registry, ring func() *keyring.Ring, verifier *caller.Verifier, shedder *limit.Shedder) *keyAccessMetrics {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_gateway_key_access_requests_total",
		Help: "Requests for data keys that ended, by who sent them (client or peer) and by outcome. Each outcome but answered says why the request was refused as a whole.",
	}, []string{"from", "outcome"})
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                            "crypto_broker_gateway_key_access_request_duration_seconds",
		Help:                            "Time from the start of a request for data keys to its reply, by who sent it. Time in the queue counts.",
		Buckets:                         keyAccessBuckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"from"})
	dataKeys := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_gateway_key_access_data_keys_total",
		Help: "Data keys that this service decided about itself, by result: released, denied by the rules, invalid because of the policy, its binding or the wrapped key, unsupported, or unavailable because a key manager did not answer.",
	}, []string{"result"})
	m := &keyAccessMetrics{
		ring: ring, verifier: verifier, shedder: shedder,
		requests: map[keyAccessRequest]prometheus.Counter{}, durations: map[keyaccess.Source]prometheus.Observer{}, dataKeys: map[keyaccess.Result]prometheus.Counter{},
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "crypto_broker_gateway_key_access_requests_in_flight",
			Help: "Requests for data keys that have no reply yet. Those that wait count.",
		}),
		waiting:    prometheus.NewDesc("crypto_broker_gateway_key_access_requests_waiting", "Requests of clients for data keys that wait in the queue.", nil, nil),
		keys:       prometheus.NewDesc("crypto_broker_gateway_key_access_keys", "Keys of the key directory, by state: current if new files use the key, old if it only unwraps, or pending if its key manager has not given its public key yet.", []string{"state"}, nil),
		lookups:    prometheus.NewDesc("crypto_broker_gateway_key_access_issuer_key_lookups_total", "Uses of the kept keys of issuers, by result: hit, or miss if the key was not there.", []string{"result"}, nil),
		signatures: prometheus.NewDesc("crypto_broker_gateway_key_access_token_signature_lookups_total", "Tokens of issuers that are known, by whether their signature was checked before: hit, or miss.", []string{"result"}, nil),
		fetches:    prometheus.NewDesc("crypto_broker_gateway_key_access_issuer_fetches_total", "Requests for the keys of issuers, by result: fetched or failed.", []string{"result"}, nil),
		proofs:     prometheus.NewDesc("crypto_broker_gateway_key_access_proofs", "Proofs that are remembered, so that none is accepted twice.", nil, nil),
		proofLimit: prometheus.NewDesc("crypto_broker_gateway_key_access_proof_limit", "Proofs that can be remembered. Beyond it, requests with proofs are refused.", nil, nil),
	}
	for _, from := range keyaccess.Sources {
		m.durations[from] = durations.WithLabelValues(string(from))
		for _, outcome := range keyaccess.Outcomes {
			m.requests[keyAccessRequest{from, outcome}] = requests.WithLabelValues(string(from), string(outcome))
		}
	}
	for _, result := range keyaccess.Results {
		m.dataKeys[result] = dataKeys.WithLabelValues(string(result))
	}
	registry.MustRegister(m, requests, durations, dataKeys, m.inFlight)
	return m
}

// Began implements keyaccess.Observer.
func (m *keyAccessMetrics) Began(keyaccess.Source) { m.inFlight.Inc() }

// Ended implements keyaccess.Observer.
func (m *keyAccessMetrics) Ended(from keyaccess.Source, outcome keyaccess.Outcome, took time.Duration) {
	m.inFlight.Dec()
	m.requests[keyAccessRequest{from, outcome}].Inc()
	m.durations[from].Observe(took.Seconds())
}

// DataKey implements keyaccess.Observer.
func (m *keyAccessMetrics) DataKey(result keyaccess.Result) { m.dataKeys[result].Inc() }

// Describe implements prometheus.Collector.
func (m *keyAccessMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.waiting, m.keys, m.lookups, m.signatures, m.fetches, m.proofs, m.proofLimit} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *keyAccessMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	counter := func(desc *prometheus.Desc, value uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	ring, stats := m.ring(), m.verifier.Stats()
	current := len(ring.Algorithms())
	gauge(m.waiting, m.shedder.Waiting())
	gauge(m.keys, current, "current")
	gauge(m.keys, ring.Len()-current-len(ring.Pending()), "old")
	gauge(m.keys, len(ring.Pending()), "pending")
	counter(m.lookups, stats.KeyHits, "hit")
	counter(m.lookups, stats.KeyMisses, "miss")
	counter(m.signatures, stats.SignatureHits, "hit")
	counter(m.signatures, stats.SignatureMisses, "miss")
	counter(m.fetches, stats.Fetches, "fetched")
	counter(m.fetches, stats.FailedFetches, "failed")
	gauge(m.proofs, stats.Proofs)
	gauge(m.proofLimit, stats.ProofLimit)
}
