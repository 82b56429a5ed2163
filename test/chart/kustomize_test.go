// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Objects that only Helm needs, so only the chart has them.
var (
	helmLabels = map[string]func(string) bool{
		"helm.sh/chart":                func(string) bool { return true },
		"app.kubernetes.io/managed-by": func(value string) bool { return value == "Helm" },
	}
	helmAnnotations = map[string]func(string) bool{
		"helm.sh/resource-policy": func(value string) bool { return value == "keep" },
	}
)

// onlyKustomize are objects that the chart does not have: with Helm, --create-namespace creates the namespace.
var onlyKustomize = []string{"Namespace " + releaseNamespace}

func TestKustomizeGivesWhatTheChartGives(t *testing.T) {
	fromChart := map[string]string{}
	for _, object := range renderChart(t) {
		object.SetLabels(without(object.GetLabels(), helmLabels))
		object.SetAnnotations(without(object.GetAnnotations(), helmAnnotations))
		add(t, fromChart, object)
	}
	fromKustomize := map[string]string{}
	for _, object := range kustomize(t, "default") {
		add(t, fromKustomize, object)
	}
	for _, identity := range onlyKustomize {
		if _, found := fromKustomize[identity]; !found {
			t.Errorf("found no %s in config/default, expected it there", identity)
		}
		delete(fromKustomize, identity)
	}
	if diff := cmp.Diff(fromChart, fromKustomize); diff != "" {
		t.Errorf("the chart (-) and config/default (+) differ; hack/generate/chart makes the one from the other:\n%s", diff)
	}
}

func add(t *testing.T, objects map[string]string, object *unstructured.Unstructured) {
	t.Helper()
	if _, found := objects[identity(object)]; found {
		t.Errorf("%s is there twice", identity(object))
	}
	document, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	objects[identity(object)] = string(document)
}

// without returns the entries without those that the filter matches.
func without(entries map[string]string, filters map[string]func(string) bool) map[string]string {
	kept := maps.Clone(entries)
	maps.DeleteFunc(kept, func(key, value string) bool {
		accept, named := filters[key]
		return named && accept(value)
	})
	return kept
}
