// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// series returns the series of a collector, sorted, each with the values of its labels in the order of their names.
func series(t *testing.T, collector prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			all = append(all, fmt.Sprint(strings.Join(labels, "/"), " ", metric.GetGauge().GetValue()))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestAProviderHasAMetricFromItsFirstStatusUntilItIsGone(t *testing.T) {
	m := newMemory()
	name := types.NamespacedName{Namespace: "shop", Name: "hsm"}
	for _, step := range []struct {
		status metav1.ConditionStatus
		want   string
	}{{"", ""}, {metav1.ConditionUnknown, "hsm/shop/1 0"}, {metav1.ConditionTrue, "hsm/shop/1 1"}} {
		m.put(name, remembered{uid: "1", ready: metav1.Condition{Status: step.status}})
		if found := series(t, providerMetrics{m}); found != step.want {
			t.Errorf("with the status %q: found %q, expected %q", step.status, found, step.want)
		}
	}
	m.forget(name)
	if found := series(t, providerMetrics{m}); found != "" {
		t.Errorf("found %q after it is gone", found)
	}
}

func TestPoliciesAndPeersAreCountedByReason(t *testing.T) {
	policies := newMemory()
	for name, reason := range map[string]string{"without a status": "", "in use": v1alpha1.ReasonInUse, "in use too": v1alpha1.ReasonInUse} {
		policies.put(types.NamespacedName{Name: name}, remembered{ready: metav1.Condition{Reason: reason}})
	}
	const want = "KeyAccessPolicy/HeldBack 0, KeyAccessPolicy/InUse 2, KeyAccessPolicy/Invalid 0, KeyAccessPolicy/NoService 0, KeyAccessPolicy/NotRead 0"
	if found := series(t, accessMetrics{"KeyAccessPolicy": policies}); found != want {
		t.Errorf("found %q, expected %q", found, want)
	}
}
