// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	manifests "github.com/crypto-broker/crypto-broker-operator/config/samples/catalogue"
)

// kustomization is the only file that is not a profile.
const kustomization = "kustomization"

// Names returns the names of the objects in the catalogue, sorted.
func Names() []string {
	files, err := fs.Glob(manifests.Manifests, "*.yaml")
	if err != nil {
		panic(fmt.Sprintf("the pattern of the catalogue's files: %v", err)) // it is a constant
	}
	var names []string
	for _, file := range files {
		if name := strings.TrimSuffix(file, ".yaml"); name != kustomization {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Choose parses a list of names, separated by commas. "all" stands for the whole catalogue, and
// "" for no profile.
func Choose(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	if list == "all" {
		return Names(), nil
	}
	var chosen []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("the catalogue has no profile %q, expected all, or names of %s", name, strings.Join(Names(), ", "))
		}
		if !slices.Contains(chosen, name) {
			chosen = append(chosen, name)
		}
	}
	slices.Sort(chosen)
	return chosen, nil
}

// desired returns the object to apply: the manifest of this name with the label and the selector.
// A nil selector selects every namespace.
func desired(name string, selector *metav1.LabelSelector) (*unstructured.Unstructured, error) {
	data, err := manifests.Manifests.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("the catalogue's profile %q: %w", name, err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(data, &object.Object); err != nil {
		return nil, fmt.Errorf("the catalogue's profile %q: %w", name, err)
	}
	object.SetLabels(map[string]string{
		v1alpha1.CatalogueLabel:        v1alpha1.CatalogueLabelValue,
		"app.kubernetes.io/managed-by": v1alpha1.FieldManager,
		"app.kubernetes.io/part-of":    "crypto-broker",
	})
	if selector != nil {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(selector)
		if err != nil {
			return nil, fmt.Errorf("the selector of the catalogue's namespaces: %w", err)
		}
		if err := unstructured.SetNestedMap(object.Object, fields, "spec", "namespaceSelector"); err != nil {
			return nil, fmt.Errorf("the selector of the catalogue's namespaces: %w", err)
		}
	}
	return object, nil
}

// Has reports whether an object is a profile of the catalogue that the operator keeps: it has the
// name and the label of such a profile.
func Has(object *v1alpha1.ClusterCryptoProfile) bool {
	return object.Labels[v1alpha1.CatalogueLabel] == v1alpha1.CatalogueLabelValue && slices.Contains(Names(), object.Name)
}
