// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const umbrellaChart = `apiVersion: v2
name: platform
version: 1.0.0
dependencies:
  - name: crypto-broker-operator
    version: 0.1.0
    alias: broker
`

// umbrella renders a chart that has this one as a dependency with an alias.
func umbrella(ctx context.Context, t *testing.T, condition, values string) ([]byte, error) {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "charts", release), os.DirFS(chartPath)); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"Chart.yaml": umbrellaChart + condition, "values.yaml": values} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	helm, err := tool(ctx, "helm")
	if err != nil {
		t.Fatal(err)
	}
	return run(ctx, helm, "template", "acme", folder, "--namespace", "platform", "--skip-tests")
}

const onCondition = "    condition: broker.enabled\n"

func TestTheChartIsADependencyOfAnotherChart(t *testing.T) {
	rendered, err := umbrella(t.Context(), t, onCondition, `
global:
  imageRegistry: registry.example
  team: {name: platform}
broker:
  enabled: true
  replicas: 3
  commonLabels: {team: platform}
`)
	if err != nil {
		t.Fatal(err)
	}
	objects := parse(t, rendered)
	deployment := find[appsv1.Deployment](t, objects, "Deployment", "acme-broker")
	if *deployment.Spec.Replicas != 3 || deployment.Labels["team"] != "platform" {
		t.Errorf("found %d replicas and the labels %v, expected the parent's values", *deployment.Spec.Replicas, deployment.Labels)
	}
	service := find[corev1.Service](t, objects, "Service", "acme-broker-webhook")
	if !has(deployment.Spec.Template.Labels, service.Spec.Selector) {
		t.Errorf("found the selector %v of the Service, expected it to select pods with %v", service.Spec.Selector, deployment.Spec.Template.Labels)
	}
}

func TestAParentSwitchesTheChartOff(t *testing.T) {
	const off = "broker:\n  enabled: false\n"
	rendered, err := umbrella(t.Context(), t, onCondition, off)
	if err != nil {
		t.Fatal(err)
	}
	if objects := parse(t, rendered); len(objects) > 0 {
		t.Errorf("found %d objects, the first is %s, expected none", len(objects), identity(objects[0]))
	}
	_, err = umbrella(t.Context(), t, "", off)
	if want := `give its dependency on broker the line "condition: broker.enabled"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, expected a parent without the condition to be refused with %q", err, want)
	}
}
