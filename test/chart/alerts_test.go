// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestThePrometheusRuleHoldsTheAlerts(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(chartPath, "alerts", "crypto-broker.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(content, &want); err != nil {
		t.Fatal(err)
	}
	if found := kinds(renderChart(t), "PrometheusRule"); len(found) != 0 {
		t.Errorf("by default there are the PrometheusRules %v, expected none", found)
	}
	objects := renderChart(t, "--set", "alerts.enabled=true,alerts.namespace=monitoring,alerts.labels.release=prometheus")
	rule := find[unstructured.Unstructured](t, objects, "PrometheusRule", release)
	if rule.GetNamespace() != "monitoring" || rule.GetLabels()["release"] != "prometheus" {
		t.Errorf("found namespace %q and labels %v, expected monitoring and release: prometheus", rule.GetNamespace(), rule.GetLabels())
	}
	if !reflect.DeepEqual(rule.Object["spec"], any(want)) {
		t.Error("the PrometheusRule holds other alerts than the file")
	}
}
