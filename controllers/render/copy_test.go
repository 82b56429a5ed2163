// SPDX-License-Identifier: Apache-2.0

package render

import (
	"reflect"
	"slices"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/callers"
)

func TestResourcesAndProfileFilesHaveTheSameFields(t *testing.T) {
	compareForms(t, "API", reflect.TypeFor[profile.API](), reflect.TypeFor[v1alpha1.Operations]())
	compareForms(t, "Settings", reflect.TypeFor[profile.Settings](), reflect.TypeFor[v1alpha1.Settings]())
	compareForms(t, "Callers", reflect.TypeFor[callers.Lists](), reflect.TypeFor[v1alpha1.Callers]())
	compareForms(t, "Audit", reflect.TypeFor[profile.Audit](), reflect.TypeFor[v1alpha1.Audit]())
	compareForms(t, "Deprecation", reflect.TypeFor[profile.Deprecation](), reflect.TypeFor[v1alpha1.Deprecation]())
}

// compareForms walks through both types as copyInto does.
func compareForms(t *testing.T, path string, file, resource reflect.Type) {
	t.Helper()
	for file.Kind() == reflect.Pointer {
		file = file.Elem()
	}
	for resource.Kind() == reflect.Pointer {
		resource = resource.Elem()
	}
	switch {
	case file.Kind() == reflect.Map:
		for i := range resource.NumField() {
			field := resource.Field(i)
			if field.Type.Kind() != reflect.Pointer {
				t.Errorf("%s.%s is a key of a map in a profile file, and no pointer in a resource", path, field.Name)
				continue
			}
			compareForms(t, path+"."+field.Name, file.Elem(), field.Type)
		}
	case resource.Kind() == reflect.Struct:
		names := func(of reflect.Type) (all []string) {
			for _, field := range reflect.VisibleFields(of) {
				all = append(all, field.Name)
			}
			slices.Sort(all)
			return all
		}
		if found, want := names(resource), names(file); !slices.Equal(found, want) {
			t.Errorf("%s of a resource has the fields %q, a profile file has %q", path, found, want)
			return
		}
		for i := range resource.NumField() {
			field := resource.Field(i)
			of, _ := file.FieldByName(field.Name)
			compareForms(t, path+"."+field.Name, of.Type, field.Type)
		}
	case resource.Kind() == reflect.Slice && !resource.ConvertibleTo(file):
		compareForms(t, path+"[]", file.Elem(), resource.Elem())
	case !resource.ConvertibleTo(file) || (resource.Kind() == reflect.String) != (file.Kind() == reflect.String):
		t.Errorf("%s is a %s in a resource and a %s in a profile file", path, resource, file)
	}
}
