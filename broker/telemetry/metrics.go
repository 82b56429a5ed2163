// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
)

// Metrics are all metrics of one broker, on a registry of their own.
type Metrics struct {
	registry  *prometheus.Registry
	requests  *requests
	inFlight  atomic.Int64
	durations [profile.OperationCount]prometheus.Observer
	reloads   map[directory.Result]prometheus.Counter
	reloaded  prometheus.Gauge
	profiles  *prometheus.GaugeVec
	info      *prometheus.GaugeVec
	revision  prometheus.Gauge
	refused   map[directory.Reason]prometheus.Counter
	// deprecated counts requests for profiles that are deprecated.
	deprecated *prometheus.CounterVec
	keys       *prometheus.GaugeVec
	fips       *prometheus.GaugeVec
}

// NewMetrics makes the metrics of a broker of the given version.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: newRequests(),
		reloads:  map[directory.Result]prometheus.Counter{},
		refused:  map[directory.Reason]prometheus.Counter{},
		revision: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "crypto_broker_profiles_revision",
			Help: "Revision that the set of profiles that is served is signed with; 0 while there is none, and where sets need no signature.",
		}),
		reloaded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "crypto_broker_profiles_last_reload_timestamp_seconds",
			Help: "When the set of profiles that is served was loaded, in seconds since 1970; 0 while there is none.",
		}),
		profiles: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_profiles",
			Help: "Profiles of the set that is served, by whether they are served or out of service because of a problem.",
		}, []string{"state"}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_profiles_info",
			Help: "Always 1; the digest is that of the set of profiles that is served.",
		}, []string{"digest"}),
		deprecated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crypto_broker_deprecated_requests_total",
			Help: "Requests for profiles that are deprecated, by profile and by the container that still uses it; empty where all callers share a socket.",
		}, []string{"profile", "container"}),
		keys: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_keys",
			Help: "Keys of the key directory, by whether they are used or cannot be because something is wrong with them.",
		}, []string{"state"}),
		fips: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_fips_info",
			Help: "Always 1; the version and the FIPS 140-3 mode of the Go Cryptographic Module, and whether operations that FIPS 140-3 does not approve are refused.",
		}, []string{"module", "mode", "enforced"}),
	}
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "crypto_broker_request_duration_seconds",
		Help: "Time from the start of a request to its reply, by operation.",
		Buckets: []float64{
			10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5,
		},
	}, []string{"operation"})
	for op := range profile.OperationCount {
		m.durations[op] = durations.WithLabelValues(profile.Operation(op).String())
	}
	reloads := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_profiles_reloads_total",
		Help: "Looks at the profile directory, by whether a set was loaded, refused, or nothing had changed.",
	}, []string{"result"})
	for _, result := range []directory.Result{directory.ResultLoaded, directory.ResultRejected, directory.ResultUnchanged} {
		m.reloads[result] = reloads.WithLabelValues(string(result))
	}
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_profiles_rejections_total",
		Help: "Sets of profiles that were found and refused, by the reason that /profiles tells since.",
	}, []string{"reason"})
	for _, reason := range directory.RejectionReasons() {
		m.refused[reason] = refused.WithLabelValues(string(reason))
	}
	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "crypto_broker_requests_in_flight",
		Help: "Requests that are being served.",
	}, func() float64 { return float64(m.inFlight.Load()) })
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "crypto_broker_build_info",
		Help: "Always 1; the labels say what is running.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.profiles.WithLabelValues("served").Set(0)
	m.profiles.WithLabelValues("rejected").Set(0)
	m.registry.MustRegister(m.requests, durations, reloads, m.reloaded, m.profiles, m.info, m.revision, refused, m.deprecated, m.keys, m.fips, inFlight, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Begin counts a request that starts. Each needs an End.
func (m *Metrics) Begin() { m.inFlight.Add(1) }

// End counts a request that ended. counters is that of its profile, nil where it
// named none that is served.
func (m *Metrics) End(op profile.Operation, counters *Counters, code codes.Code, took time.Duration) {
	if counters == nil {
		counters = &m.requests.unknown
	}
	counters.Add(op, code)
	m.durations[op].Observe(took.Seconds())
	m.inFlight.Add(-1)
}

// Profiles returns the counters of each profile of a set that is about to be
// served; those of profiles that are not in it are dropped.
func (m *Metrics) Profiles(set *profile.Set) map[string]*Counters {
	m.deprecated.Reset() // counters may begin anew; the label set must not grow for ever
	return m.requests.use(set.Names())
}

// Deprecated counts a request for a profile that is deprecated. container is the
// name of a caller with a socket of its own, else empty.
func (m *Metrics) Deprecated(profile, container string) {
	m.deprecated.WithLabelValues(profile, container).Inc()
}

// FIPS tells what the broker computes with, and whether it refuses what FIPS
// 140-3 does not approve.
func (m *Metrics) FIPS(module, mode string, enforced bool) {
	m.fips.WithLabelValues(module, mode, strconv.FormatBool(enforced)).Set(1)
}

// Keys tells how many keys the key directory holds.
func (m *Metrics) Keys(used, unusable int) {
	m.keys.WithLabelValues("used").Set(float64(used))
	m.keys.WithLabelValues("unusable").Set(float64(unusable))
}

// Looked counts a look at the profile directory.
func (m *Metrics) Looked(event directory.Event) {
	m.reloads[event.Result].Inc()
	if event.Result == directory.ResultRejected {
		m.refused[event.Reason].Inc()
	}
	if event.Result != directory.ResultLoaded {
		return
	}
	m.revision.Set(float64(event.Revision))
	m.reloaded.SetToCurrentTime()
	m.profiles.WithLabelValues("served").Set(float64(event.Set.Len()))
	m.profiles.WithLabelValues("rejected").Set(float64(event.Set.Rejected()))
	m.info.Reset()
	m.info.WithLabelValues(event.Set.Digest()).Set(1)
}
