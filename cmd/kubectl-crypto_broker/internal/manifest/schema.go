// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/config/crd"
)

// Schemas are the schemas of the kinds of this project, by kind.
type Schemas map[string]definition

// definition is a CustomResourceDefinition in the forms that the API server uses for its checks.
type definition struct {
	Structural *schema.Structural
	openapi    validation.SchemaValidator
	rules      *cel.Validator
	namespaced bool
}

// ReadSchemas returns the schemas of the CustomResourceDefinitions that are part of this
// program. It compiles their rules once. They are safe for concurrent use.
var ReadSchemas = sync.OnceValues(readSchemas)

func readSchemas() (Schemas, error) {
	all := Schemas{}
	files, err := fs.Glob(crd.Definitions, "bases/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := crd.Definitions.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var versioned apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &versioned); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, version := range versioned.Spec.Versions {
			if version.Name != v1alpha1.GroupVersion.Version {
				continue
			}
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			d := definition{namespaced: versioned.Spec.Scope == apiextensionsv1.NamespaceScoped}
			if d.Structural, err = schema.NewStructural(&internal); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if d.openapi, _, err = validation.NewSchemaValidator(&internal); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			d.rules = cel.NewValidator(d.Structural, true, celconfig.PerCallLimit)
			all[versioned.Spec.Names.Kind] = d
		}
	}
	return all, nil
}

// Kinds returns the kinds that have a definition.
func (s Schemas) Kinds() []string { return slices.Sorted(maps.Keys(s)) }

// Check takes the steps of the API server: it checks the metadata, finds unknown fields, fills in
// defaults and validates by the schema and its rules. The problems begin with
// the path of the field. filled is the object with its defaults as JSON.
func (s Schemas) Check(ctx context.Context, kind string, object map[string]any) (filled []byte, problems []string, err error) {
	d, known := s[kind]
	if !known {
		return nil, nil, fmt.Errorf("there is no definition of the kind %s", kind)
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, nil, err
	}
	var typed map[string]any
	if err := utiljson.Unmarshal(data, &typed); err != nil { // keeps whole numbers whole
		return nil, nil, err
	}
	problems = d.checkMetadata(typed)
	named := len(problems) == 0
	for _, path := range pruning.PruneWithOptions(typed, d.Structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		problems = append(problems, path+": there is no such field"+nearField(d.Structural, path))
	}
	defaulting.Default(typed, d.Structural)
	errs := validation.ValidateCustomResource(nil, typed, d.openapi)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.Structural, typed)...)
	if len(errs) == 0 && named && d.rules != nil { // rules rely on a valid shape
		ruled, _ := d.rules.Validate(ctx, nil, d.Structural, typed, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, ruled...)
	}
	for _, err := range errs {
		problems = append(problems, sentence(err))
	}
	slices.Sort(problems) // the validators go through maps
	filled, err = json.Marshal(typed)
	return filled, problems, err
}

// sentence returns the API server's message for an error, with patterns described in words.
func sentence(err *field.Error) string {
	if _, pattern, is := strings.Cut(err.Detail, " in body should match '"); is {
		if want, known := Patterns[strings.TrimSuffix(pattern, "'")]; known {
			return fmt.Sprintf("%s: found %q, expected %s", err.Field, err.BadValue, want)
		}
	}
	if err.Field == (*field.Path)(nil).String() { // the whole object
		return err.ErrorBody()
	}
	return err.Field + ": " + err.ErrorBody()
}

// Patterns describe the regular expressions of the definitions in words.
var Patterns = map[string]string{
	`^[^\s\p{C}]([^\p{C}]*[^\s\p{C}])?$`: "a name without control characters, and without white space at its begin and end",
	`^[!-~]+$`:                           "printable ASCII characters without spaces",
	`^[0-9a-f]{64}$`:                     "64 hexadecimal digits in lower case",
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`:    "lower-case letters, digits and inner hyphens",
}

// nearField suggests an existing field that an unknown field probably stands for.
func nearField(s *schema.Structural, path string) string {
	parts := strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		part, _, indexed := strings.Cut(part, "[")
		next, is := s.Properties[part]
		if !is {
			return ""
		}
		s = &next
		if indexed && s.Items != nil {
			s = s.Items
		}
	}
	if near := profile.Nearest(parts[len(parts)-1], slices.Sorted(maps.Keys(s.Properties))); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
