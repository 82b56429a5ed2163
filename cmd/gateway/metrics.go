// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// metrics are all metrics of a gateway, in their own registry. No label has a value that a
// broker or a user has chosen.
type metrics struct {
	gateway   *process
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	// The other metrics are collected at each scrape.
	connections, failedHandshakes, calls, providers, toManagers *prometheus.Desc
	endpoints                                                   endpointMetrics
}

// durationBuckets are the buckets of durations of requests, in seconds.
var durationBuckets = []float64{100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10}

func newMetrics(g *process) *metrics {
	m := &metrics{
		gateway:  g,
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crypto_broker_gateway_requests_total",
			Help: "Requests of brokers that ended, by method and gRPC code. Calls that were refused because there are too many do not count.",
		}, []string{"method", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "crypto_broker_gateway_request_duration_seconds",
			Help:    "Time from the start of a request to its reply, by method.",
			Buckets: durationBuckets,
		}, []string{"method"}),
		connections: prometheus.NewDesc("crypto_broker_gateway_connections", "Connections of brokers that are open.", nil, nil),
		failedHandshakes: prometheus.NewDesc("crypto_broker_gateway_failed_handshakes_total",
			"Connections of brokers that ended because their TLS handshake failed. The log says why.", nil, nil),
		calls: prometheus.NewDesc("crypto_broker_gateway_requests_in_flight", "Requests of brokers that are being served.", nil, nil),
		providers: prometheus.NewDesc("crypto_broker_gateway_key_providers",
			"KeyProviders and ClusterKeyProviders, by type and state: usable, or unusable because of a problem that the log names.", []string{"type", "state"}, nil),
		toManagers: prometheus.NewDesc("crypto_broker_gateway_key_manager_connections",
			"Connections to key managers, by type and state: busy with a request, or idle.", []string{"type", "state"}, nil),
		endpoints: newEndpointMetrics(),
	}
	m.registry.MustRegister(m, m.requests, m.durations)
	describeProgram(m.registry)
	return m
}

// describeProgram adds the metrics of the program's version and of its process.
func describeProgram(registry *prometheus.Registry) {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "crypto_broker_gateway_build_info",
		Help: "Always 1. The labels are the version of the gateway and of Go.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(program.Version(version), runtime.Version()).Set(1)
	secured := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "crypto_broker_gateway_tls_info",
		Help: "Always 1. The labels are the module that makes the TLS connections to key managers, its version, its FIPS provider if it is OpenSSL, and whether it says that it is in FIPS 140-3 mode.",
	}, []string{"provider", "version", "fips_module", "fips"})
	module := tlsprovider.Current()
	secured.WithLabelValues(module.Provider, module.Version, module.FIPSModule, strconv.FormatBool(module.FIPS)).Set(1)
	registry.MustRegister(build, secured, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// observe counts a request that ended. The server calls it only for methods of the protocol.
func (m *metrics) observe(method string, code codes.Code, took time.Duration) {
	name := path.Base(method)
	m.requests.WithLabelValues(name, code.String()).Inc()
	m.durations.WithLabelValues(name).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.connections, m.failedHandshakes, m.calls, m.providers, m.toManagers} {
		ch <- desc
	}
	m.endpoints.describe(ch)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	load := m.gateway.server.Load()
	gauge(m.connections, load.Connections)
	ch <- prometheus.MustNewConstMetric(m.failedHandshakes, prometheus.CounterValue, float64(m.gateway.server.FailedHandshakes()))
	gauge(m.calls, load.Calls)
	for kind, sum := range m.gateway.source.Load() {
		gauge(m.providers, sum.Usable, kind, "usable")
		gauge(m.providers, sum.Unusable, kind, "unusable")
		gauge(m.toManagers, sum.Busy, kind, "busy")
		gauge(m.toManagers, sum.Connections-sum.Busy, kind, "idle")
	}
	m.endpoints.collect(ch, m.gateway.source.Endpoints())
}
