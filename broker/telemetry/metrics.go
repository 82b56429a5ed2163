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
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// Metrics are all metrics of one broker, in their own registry.
type Metrics struct {
	registry  *prometheus.Registry
	since     time.Time
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
	failed     *prometheus.CounterVec
	keys       *prometheus.GaugeVec
	strength   *prometheus.GaugeVec
	fips       *prometheus.GaugeVec
	tls        *prometheus.GaugeVec

	keyVersions *keyVersions
	traffic     traffic
}

// NewMetrics returns the metrics of a broker of the given version.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		since:    time.Now(),
		requests: newRequests(),
		reloads:  map[directory.Result]prometheus.Counter{},
		refused:  map[directory.Reason]prometheus.Counter{},

		keyVersions: &keyVersions{reads: map[keyVersion]*atomic.Uint64{}},
		revision: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "crypto_broker_profiles_revision",
			Help: "Revision in the signed statement of the profile set that is served. 0 while no set is served, and if sets need no signature.",
		}),
		reloaded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "crypto_broker_profiles_last_reload_timestamp_seconds",
			Help: "When the profile set that is served was loaded, in seconds since 1970. 0 while no set is served.",
		}),
		profiles: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_profiles",
			Help: "Profiles of the set that is served, by state: served, or rejected because of a problem.",
		}, []string{"state"}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_profiles_info",
			Help: "Always 1. The label digest is the digest of the profile set that is served.",
		}, []string{"digest"}),
		deprecated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crypto_broker_deprecated_requests_total",
			Help: "Requests for deprecated profiles, by profile and by the container that called. The container is empty if all callers share a socket.",
		}, []string{"profile", "container"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crypto_broker_failed_requests_total",
			Help: "Finished requests that were not answered with OK, by operation, gRPC status code and container that called. The container is empty if all callers share a socket.",
		}, []string{"operation", "code", "container"}),
		keys: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_keys",
			Help: "Keys of the key directory, by state: used, or unusable because of a problem.",
		}, []string{"state"}),
		strength: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_profile_strength_bits",
			Help: "Security strength in bits of the weakest use that a profile of the served set allows, by profile.",
		}, []string{"profile"}),
		fips: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_fips_info",
			Help: "Always 1. The labels are the version and the FIPS 140-3 mode of the Go Cryptographic Module, and whether the broker refuses operations that FIPS 140-3 does not approve.",
		}, []string{"module", "mode", "enforced"}),
		tls: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_tls_info",
			Help: "Always 1. The labels are the module that makes the TLS connections that the broker opens, its version, its FIPS provider if it is OpenSSL, and whether it says that it is in FIPS 140-3 mode.",
		}, []string{"provider", "version", "fips_module", "fips"}),
	}
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "crypto_broker_request_duration_seconds",
		Help: "Time from the start of a request to its reply, by operation.",
		Buckets: []float64{
			10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10,
		},
		// A Prometheus that asks for native histograms gets native histograms instead. Each
		// bucket is at most 10 % wider than the one before. The limit bounds the memory.
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"operation"})
	for op := range profile.OperationCount {
		m.durations[op] = durations.WithLabelValues(profile.Operation(op).String())
	}
	reloads := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_profiles_reloads_total",
		Help: "Checks of the profile directory, by result: a set was loaded, a set was rejected, or nothing had changed.",
	}, []string{"result"})
	for _, result := range []directory.Result{directory.ResultLoaded, directory.ResultRejected, directory.ResultUnchanged} {
		m.reloads[result] = reloads.WithLabelValues(string(result))
	}
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_profiles_rejections_total",
		Help: "Profile sets that were found and rejected, by the reason that /profiles has.",
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
		Help: "Always 1. The labels are the version of the broker and of Go.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.profiles.WithLabelValues("served").Set(0)
	m.profiles.WithLabelValues("rejected").Set(0)
	m.registry.MustRegister(m.requests, durations, reloads, m.reloaded, m.profiles, m.info, m.revision, refused, m.deprecated, m.failed, m.keys, m.strength, m.fips, m.tls, served{m}, inFlight, build, m.keyVersions, &m.traffic,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Register adds metrics of the program that the broker runs in.
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

// Begin counts a request that starts. Each call of Begin needs a call of End.
func (m *Metrics) Begin() { m.inFlight.Add(1) }

// End counts a request that ended. counters are the counters of its profile, or nil if the
// request named no served profile. traceID is the id of its trace, which becomes an exemplar of
// the histogram. It is empty if the request is not sampled.
func (m *Metrics) End(op profile.Operation, counters *Counters, code codes.Code, took time.Duration, traceID string) {
	if counters == nil {
		counters = &m.requests.unknown
	}
	counters.Add(op, code)
	if traceID == "" {
		m.durations[op].Observe(took.Seconds())
	} else {
		m.durations[op].(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": traceID}) //nolint:forcetypeassert // a histogram is one
	}
	m.inFlight.Add(-1)
}

// Profiles returns the counters of each profile of a set that the broker is about to serve.
// It drops the counters of all other profiles.
func (m *Metrics) Profiles(set *profile.Set) map[string]*Counters {
	m.deprecated.Reset() // so that the number of labels does not grow without limit
	return m.requests.use(set)
}

// Rollouts returns the calls of each profile that is rolled out.
func (m *Metrics) Rollouts() []RolloutCalls { return m.requests.rolledOut() }

// Deprecated counts a request for a deprecated profile. container is the name of the
// caller, empty if all callers share a socket.
func (m *Metrics) Deprecated(profile, container string) {
	m.deprecated.WithLabelValues(profile, container).Inc()
}

// Failed counts a request that ended with another code than OK. The caller calls [Metrics.End] as
// well. container is the name of the caller, empty if all callers share a socket.
func (m *Metrics) Failed(op profile.Operation, code codes.Code, container string) {
	m.failed.WithLabelValues(op.String(), code.String(), container).Inc()
}

// FIPS sets the cryptographic module and its mode, and whether the broker refuses
// operations that FIPS 140-3 does not approve.
func (m *Metrics) FIPS(module, mode string, enforced bool) {
	m.fips.WithLabelValues(module, mode, strconv.FormatBool(enforced)).Set(1)
}

// TLS sets the module that makes the TLS connections of the broker.
func (m *Metrics) TLS(module tlsprovider.Module) {
	m.tls.WithLabelValues(module.Provider, module.Version, module.FIPSModule, strconv.FormatBool(module.FIPS)).Set(1)
}

// Keys sets how many keys of the key directory are used, and how many are unusable.
func (m *Metrics) Keys(used, unusable int) {
	m.keys.WithLabelValues("used").Set(float64(used))
	m.keys.WithLabelValues("unusable").Set(float64(unusable))
}

// Looked counts a check of the profile directory, and records the set if one was loaded.
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
	m.strength.Reset()
	for _, name := range event.Set.Names() {
		compiled, _ := event.Set.Lookup(name)
		m.strength.WithLabelValues(name).Set(float64(compiled.Strength().Bits))
	}
}
