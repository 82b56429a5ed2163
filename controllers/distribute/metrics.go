// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	propagationDuration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "crypto_broker_operator_propagation_duration_seconds",
		Help:    "Time from writing a set of profiles to its ConfigMap until a running broker confirmed that it serves it.",
		Buckets: []float64{0.1, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 5, 10, 30, 60, 90, 120, 300},
	})
	stageDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "crypto_broker_operator_propagation_stage_duration_seconds",
		Help:    "Time of one stage of the propagation of a set: written, from the start of its namespace's reconciliation to its ConfigMap; annotated, from the ConfigMap to the first annotation of a pod; served, from the last annotation of a pod until its broker confirmed the set.",
		Buckets: []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 5, 10, 30, 60, 120, 300},
	}, []string{"stage"})
	patches = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crypto_broker_operator_patches_total",
		Help: "Annotations written to pods to make their kubelet refresh the profiles, by the number of the attempt.",
	}, []string{"try"})
	podsDescription = prometheus.NewDesc(
		"crypto_broker_operator_pods",
		"Running pods with a broker, by namespace and state: updated if the broker serves the current profiles, behind, or unverified if it can't be asked.",
		[]string{"namespace", "state"}, nil)
)

// The stages of the way of a set. The label set is closed.
const (
	stageWritten   = "written"
	stageAnnotated = "annotated"
	stageServed    = "served"
)

// SetWritten counts how long it took from the start of a reconciliation until its set was in the
// ConfigMap.
func SetWritten(took time.Duration) {
	stageDuration.WithLabelValues(stageWritten).Observe(took.Seconds())
}

// observeTimes counts how long the set took until the broker confirmed it.
func (b *broker) observeTimes(now time.Time) {
	propagationDuration.Observe(now.Sub(b.target.Written).Seconds())
	if b.tries > 0 {
		stageDuration.WithLabelValues(stageServed).Observe(now.Sub(b.tried).Seconds())
	}
}

func init() {
	for _, stage := range []string{stageWritten, stageAnnotated, stageServed} {
		stageDuration.WithLabelValues(stage)
	}
	for _, try := range []string{"1", "2", "3", "4"} {
		patches.WithLabelValues(try) // a counter needs a value from the start, so that rate() works
	}
}

// Register registers the metrics of distribution, the Distributor's among them.
func (d *Distributor) Register(registry prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{propagationDuration, stageDuration, patches, d} {
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

var _ prometheus.Collector = &Distributor{}

// Describe implements prometheus.Collector.
func (d *Distributor) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- podsDescription }

// Collect implements prometheus.Collector. It counts at each scrape, so a deleted namespace
// leaves no series.
func (d *Distributor) Collect(metrics chan<- prometheus.Metric) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, ns := range d.namespaces {
		s := ns.summary(now)
		if s.Pods == 0 {
			continue
		}
		for state, count := range map[string]int{
			"updated":    s.Updated,
			"unverified": s.Unverified + s.Checking,
			"behind":     s.Updating + s.Behind + s.Refusing + s.Waiting,
		} {
			metrics <- prometheus.MustNewConstMetric(podsDescription, prometheus.GaugeValue, float64(count), name, state)
		}
	}
}
