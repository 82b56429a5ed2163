// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

var conditionsDescription = prometheus.NewDesc(
	"crypto_broker_operator_profile_conditions",
	"Profiles that have a condition which says that something is wrong or not known, by kind, namespace (empty for ClusterCryptoProfiles), condition, status and reason. Conditions that no profile has are not listed.",
	[]string{"kind", "namespace", "condition", "status", "reason"}, nil)

// healthy has the healthy status of each counted condition. Other statuses are counted.
var healthy = [...]struct {
	condition string
	status    metav1.ConditionStatus
}{
	{v1alpha1.ConditionReady, metav1.ConditionTrue},
	{v1alpha1.ConditionAccepted, metav1.ConditionTrue},
	{v1alpha1.ConditionPropagated, metav1.ConditionTrue},
	{v1alpha1.ConditionDegraded, metav1.ConditionFalse},
	{v1alpha1.ConditionStalled, metav1.ConditionFalse},
	{v1alpha1.ConditionDowngradeWithheld, metav1.ConditionFalse},
}

// finding is a condition of healthy that has another status. The zero value is none.
type finding struct {
	status metav1.ConditionStatus
	reason string
}

// findings are the conditions of a profile that have another status than in healthy.
type findings [len(healthy)]finding

func findingsOf(conditions []metav1.Condition) (found findings) {
	for i, h := range healthy {
		if c := meta.FindStatusCondition(conditions, h.condition); c != nil && c.Status != h.status {
			found[i] = finding{c.Status, c.Reason}
		}
	}
	return found
}

// found stores the findings of a profile for the metric. The status with these conditions may be
// written later.
func (m *memory) found(name types.NamespacedName, conditions []metav1.Condition) {
	m.update(name, func(known *remembered) { known.findings = findingsOf(conditions) })
}

// conditionMetrics counts the profiles in two memories.
type conditionMetrics struct{ profiles, cluster *memory }

var _ prometheus.Collector = conditionMetrics{}

// Describe implements prometheus.Collector.
func (conditionMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- conditionsDescription
}

// Collect implements prometheus.Collector.
func (c conditionMetrics) Collect(metrics chan<- prometheus.Metric) {
	c.profiles.collect("CryptoProfile", metrics)
	c.cluster.collect("ClusterCryptoProfile", metrics)
}

func (m *memory) collect(kind string, metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for namespace, profiles := range m.profiles {
		var counts [len(healthy)]map[finding]int
		for _, known := range profiles {
			for i, f := range known.findings {
				if f == (finding{}) {
					continue
				}
				if counts[i] == nil {
					counts[i] = map[finding]int{}
				}
				counts[i][f]++
			}
		}
		for i := range counts {
			for f, n := range counts[i] {
				metrics <- prometheus.MustNewConstMetric(conditionsDescription, prometheus.GaugeValue, float64(n),
					kind, namespace, healthy[i].condition, string(f.status), f.reason)
			}
		}
	}
}
