// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

var phasesDescription = prometheus.NewDesc(
	"crypto_broker_operator_rollouts",
	"Profiles that are being rolled out, by phase: Progressing, Paused, Failed or Returned.",
	[]string{"phase"}, nil)

// phases are the phases of the rollouts that are not complete. It is safe for concurrent use.
type phases struct {
	mu sync.Mutex
	of map[types.NamespacedName]string
}

func newPhases() *phases { return &phases{of: map[types.NamespacedName]string{}} }

// set stores the phase of a profile. nil stands for no rollout.
func (p *phases) set(name types.NamespacedName, status *v1alpha1.RolloutStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if status == nil || status.Phase == v1alpha1.RolloutComplete {
		delete(p.of, name)
		return
	}
	p.of[name] = status.Phase
}

// Describe implements prometheus.Collector.
func (p *phases) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- phasesDescription }

// Collect implements prometheus.Collector. It lists all phases, even phases without a profile.
func (p *phases) Collect(metrics chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := map[string]int{v1alpha1.RolloutProgressing: 0, v1alpha1.RolloutPaused: 0, v1alpha1.RolloutFailed: 0, v1alpha1.RolloutReturned: 0}
	for _, phase := range p.of {
		counts[phase]++
	}
	for phase, count := range counts {
		metrics <- prometheus.MustNewConstMetric(phasesDescription, prometheus.GaugeValue, float64(count), phase)
	}
}
