// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// definitions reads the CustomResourceDefinitions that are generated.
func definitions(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Fatalf("found %q, expected the definitions of at least two kinds", files)
	}
	var all []apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &definition); err != nil {
			t.Fatal(err)
		}
		all = append(all, definition)
	}
	return all
}

// fields calls f for each field below a schema, with its path.
func fields(schema apiextensionsv1.JSONSchemaProps, path string, f func(path string, schema apiextensionsv1.JSONSchemaProps)) {
	for name, property := range schema.Properties {
		at := path + "." + name
		if at == ".apiVersion" || at == ".kind" || at == ".metadata" {
			continue
		}
		f(at, property)
		if strings.HasSuffix(at, "amespaceSelector") || at == ".status.conditions" {
			continue // described by Kubernetes
		}
		fields(property, at, f)
		if property.Items != nil && property.Items.Schema != nil {
			fields(*property.Items.Schema, at+"[]", f)
		}
	}
}

// hidden returns the values of an enum that kubectl explain does not show: enums of items, and enums of more than four values.
func hidden(schema apiextensionsv1.JSONSchemaProps) []string {
	values := schema.Enum
	if len(values) <= 4 {
		values = nil
	}
	if schema.Items != nil {
		values = schema.Items.Schema.Enum
	}
	var names []string
	for _, value := range values {
		names = append(names, strings.Trim(string(value.Raw), `"`))
	}
	return names
}

func TestEveryFieldSaysWhatItIsAndShowsAValue(t *testing.T) {
	for _, definition := range definitions(t) {
		seen := 0
		fields(*definition.Spec.Versions[0].Schema.OpenAPIV3Schema, "", func(path string, schema apiextensionsv1.JSONSchemaProps) {
			seen++
			name := strings.TrimSuffix(path[strings.LastIndex(path, ".")+1:], "[]")
			if !strings.HasPrefix(schema.Description, name+" ") {
				t.Errorf("%s: the description of %s begins otherwise than with its name: %q", definition.Spec.Names.Kind, path, schema.Description)
			}
			enum := len(schema.Enum) > 0 || schema.Items != nil && len(schema.Items.Schema.Enum) > 0
			if !enum && !strings.Contains(schema.Description, "Example") {
				t.Errorf("%s: the description of %s has no example, and it has no enum", definition.Spec.Names.Kind, path)
			}
			for _, value := range hidden(schema) {
				if !strings.Contains(schema.Description, value) {
					t.Errorf("%s: the description of %s does not name %s, which kubectl explain does not show", definition.Spec.Names.Kind, path, value)
				}
			}
			for line := range strings.Lines(schema.Description) {
				if len(line) > 78 {
					t.Errorf("%s: a line in the description of %s is longer than kubectl explain shows it: %q", definition.Spec.Names.Kind, path, line)
				}
			}
		})
		if seen < 10 {
			t.Errorf("%s: only %d fields were seen", definition.Spec.Names.Kind, seen)
		}
	}
}

func TestTheKindsOfProfilesHaveShortNamesACategoryAndColumns(t *testing.T) {
	columns := []string{"Ready", "Accepted", "Profile", "Strength", "FIPS", "Pods", "Updated", "Propagated", "Rollout", "Degraded", "Age"}
	for _, definition := range definitions(t) {
		names := definition.Spec.Names
		if !strings.HasSuffix(names.Kind, "CryptoProfile") {
			continue
		}
		if short := map[string]string{"CryptoProfile": "cprof", "ClusterCryptoProfile": "ccprof"}[names.Kind]; !slices.Equal(names.ShortNames, []string{short}) || !slices.Equal(names.Categories, []string{"crypto-broker"}) {
			t.Errorf("%s: found the short names %q and the categories %q", names.Kind, names.ShortNames, names.Categories)
		}
		var found []string
		for _, column := range definition.Spec.Versions[0].AdditionalPrinterColumns {
			if column.Description == "" && column.Name != "Age" {
				t.Errorf("%s: the column %s has no description", names.Kind, column.Name)
			}
			if column.Priority == 0 {
				found = append(found, column.Name)
			}
		}
		if !slices.Equal(found, columns) {
			t.Errorf("%s: found the columns %q, expected %q", names.Kind, found, columns)
		}
	}
}

func TestTheListOfNamespacesIsAsLongAsTheSchemaAllows(t *testing.T) {
	for _, definition := range definitions(t) {
		if definition.Spec.Names.Kind != "ClusterCryptoProfile" {
			continue
		}
		status := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		if most := status.Properties["perNamespace"].MaxItems; most == nil || *most != v1alpha1.MaxPerNamespace {
			t.Errorf("the schema allows %v, expected %d", most, v1alpha1.MaxPerNamespace)
		}
	}
}
