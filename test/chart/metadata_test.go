// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// has reports whether a map has all entries of another one.
func has(entries, wanted map[string]string) bool {
	for key, value := range wanted {
		if found, there := entries[key]; !there || found != value {
			return false
		}
	}
	return true
}

func TestEveryObjectHasTheCommonLabelsAndAnnotations(t *testing.T) {
	labels, annotations := map[string]string{"cost-centre": "4711"}, map[string]string{"example.com/owner": "security"}
	rendered, err := templateAll(t.Context(), everySwitchOn()...)
	if err != nil {
		t.Fatal(err)
	}
	objects := parse(t, rendered)
	objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
		"kind": "Pod of the Deployment", "metadata": deploymentOf(t, objects).Object["spec"].(map[string]any)["template"].(map[string]any)["metadata"],
	}})
	for _, object := range objects {
		if object.GetName() == release+"-more" {
			continue // belongs to the user
		}
		if !has(object.GetLabels(), labels) || !has(object.GetAnnotations(), annotations) {
			t.Errorf("%s has the labels %v and the annotations %v, expected %v and %v among them", identity(object), object.GetLabels(), object.GetAnnotations(), labels, annotations)
		}
	}
}

func deploymentOf(t *testing.T, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			return object
		}
	}
	t.Fatal("found no Deployment")
	return nil
}

func TestWhatIsForOneObjectCountsBeforeWhatIsForAll(t *testing.T) {
	const common = "commonLabels.team=platform,commonAnnotations.note=common"
	for value, of := range map[string]func([]*unstructured.Unstructured) (labels, annotations map[string]string){
		"deploymentLabels.team=own,deploymentAnnotations.note=own": func(objects []*unstructured.Unstructured) (map[string]string, map[string]string) {
			found := find[appsv1.Deployment](t, objects, "Deployment", release)
			return found.Labels, found.Annotations
		},
		"podLabels.team=own,podAnnotations.note=own": func(objects []*unstructured.Unstructured) (map[string]string, map[string]string) {
			found := find[appsv1.Deployment](t, objects, "Deployment", release).Spec.Template
			return found.Labels, found.Annotations
		},
		"webhook.service.labels.team=own,webhook.service.annotations.note=own": func(objects []*unstructured.Unstructured) (map[string]string, map[string]string) {
			found := find[corev1.Service](t, objects, "Service", release+"-webhook")
			return found.Labels, found.Annotations
		},
		"serviceAccount.labels.team=own,serviceAccount.annotations.note=own": func(objects []*unstructured.Unstructured) (map[string]string, map[string]string) {
			found := find[corev1.ServiceAccount](t, objects, "ServiceAccount", release)
			return found.Labels, found.Annotations
		},
	} {
		t.Run(value, func(t *testing.T) {
			labels, annotations := of(renderChart(t, "--set", common+","+value))
			if labels["team"] != "own" || annotations["note"] != "own" {
				t.Errorf("found the label %q and the annotation %q, expected its own of both", labels["team"], annotations["note"])
			}
			if labels["app.kubernetes.io/name"] != release {
				t.Errorf("found the labels %v, expected the labels of the release among them", labels)
			}
		})
	}
}

func TestTheServiceHasTheIPFamiliesOfTheValues(t *testing.T) {
	found := find[corev1.Service](t, renderChart(t, everySwitchOn()...), "Service", release+"-webhook").Spec
	if found.IPFamilyPolicy == nil || *found.IPFamilyPolicy != corev1.IPFamilyPolicyPreferDualStack || len(found.IPFamilies) != 2 || found.IPFamilies[0] != corev1.IPv6Protocol {
		t.Errorf("found %+v, expected PreferDualStack with IPv6 first", found)
	}
	found = find[corev1.Service](t, renderChart(t), "Service", release+"-webhook").Spec
	if found.IPFamilyPolicy != nil || found.IPFamilies != nil {
		t.Errorf("found %+v, expected the cluster to choose", found)
	}
}

func TestTheDisruptionBudgetIsWhatTheValuesSay(t *testing.T) {
	for value, want := range map[string]policyv1.PodDisruptionBudgetSpec{
		"":                                       {MaxUnavailable: &intstr.IntOrString{IntVal: 1}},
		"podDisruptionBudget.maxUnavailable=50%": {MaxUnavailable: &intstr.IntOrString{Type: intstr.String, StrVal: "50%"}},
		"podDisruptionBudget.minAvailable=0":     {MinAvailable: &intstr.IntOrString{IntVal: 0}},
		"podDisruptionBudget.minAvailable=2":     {MinAvailable: &intstr.IntOrString{IntVal: 2}},
	} {
		t.Run(value, func(t *testing.T) {
			found := find[policyv1.PodDisruptionBudget](t, renderChart(t, "--set", value), "PodDisruptionBudget", release).Spec
			if found.MaxUnavailable.String() != want.MaxUnavailable.String() || found.MinAvailable.String() != want.MinAvailable.String() {
				t.Errorf("found %s away and %s there, expected %s and %s", found.MaxUnavailable, found.MinAvailable, want.MaxUnavailable, want.MinAvailable)
			}
		})
	}
	for _, object := range renderChart(t, "--set", "podDisruptionBudget.enabled=false") {
		if object.GetKind() == "PodDisruptionBudget" {
			t.Errorf("found %s, expected none", identity(object))
		}
	}
}

func TestTheDeploymentHasTheProbesAndTheStrategyOfTheValues(t *testing.T) {
	spec := find[appsv1.Deployment](t, renderChart(t, "--set", "revisionHistoryLimit=0,strategy.type=Recreate,readinessProbe.timeoutSeconds=4,livenessProbe.periodSeconds=30"), "Deployment", release).Spec
	operator := spec.Template.Spec.Containers[0]
	for what, holds := range map[string]bool{
		"the limit of former versions":        *spec.RevisionHistoryLimit == 0,
		"the strategy alone":                  spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType && spec.Strategy.RollingUpdate == nil,
		"the changed time of readiness":       operator.ReadinessProbe.TimeoutSeconds == 4,
		"the default times of readiness":      operator.ReadinessProbe.PeriodSeconds == 2 && operator.ReadinessProbe.HTTPGet.Path == "/readyz",
		"the changed time between two probes": operator.LivenessProbe.PeriodSeconds == 30 && operator.LivenessProbe.FailureThreshold == 6,
	} {
		if !holds {
			t.Errorf("found no %s in the Deployment", what)
		}
	}
}

func TestMoreObjectsAreTemplates(t *testing.T) {
	values := `extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ .Release.Name }}-a"}}` +
		`,"# two of them\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Namespace }}-b\n--- # the other\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}"` +
		`,"{{ if false }}apiVersion: v1{{ end }}"]`
	objects := renderChart(t, "--set-json", values)
	for _, name := range []string{release + "-a", releaseNamespace + "-b", "c"} {
		find[corev1.ConfigMap](t, objects, "ConfigMap", name)
	}
}
