// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

func TestTheMetricCountsConditionsThatAreNotAsTheyShouldBe(t *testing.T) {
	c := conditionMetrics{newMemory(true), newMemory(true)}
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	name := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	fine := []metav1.Condition{
		condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllUpdated),
		condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected),
		condition(v1alpha1.ConditionDowngradeWithheld, metav1.ConditionFalse, v1alpha1.ReasonNothingWithheld),
	}
	refused := []metav1.Condition{
		condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSetRefused),
		condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonSetRefused),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	expect := func(sentence string, want map[string]float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.Metric {
				var labels []string
				for _, label := range metric.Label { // by name: condition, kind, namespace, reason, status
					labels = append(labels, label.GetValue())
				}
				found[strings.Join(labels, "/")] = metric.Gauge.GetValue()
			}
		}
		if !maps.Equal(found, want) {
			t.Errorf("%s: found %v, expected %v", sentence, found, want)
		}
	}
	c.profiles.found(name("shop", "fine"), fine)
	expect("what is well is not listed", nil)

	c.profiles.found(name("shop", "orders"), refused)
	c.profiles.found(name("shop", "payments"), refused)
	c.cluster.found(name("", "common"), refused[1:])
	expect("profiles of a namespace are counted together", map[string]float64{
		"Degraded/ClusterCryptoProfile//SetRefused/True": 1,
		"Degraded/CryptoProfile/shop/SetRefused/True":    2,
		"Ready/CryptoProfile/shop/SetRefused/False":      2,
	})

	c.profiles.found(name("shop", "orders"), fine)
	c.profiles.retain("shop", func(name string) bool { return name != "payments" })
	c.cluster.forget(name("", "common"))
	expect("nothing is left of what is well or gone", nil)
	if n := len(c.profiles.profiles); n != 0 {
		t.Errorf("%d namespaces are remembered, expected none", n)
	}
}
