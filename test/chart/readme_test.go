// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// schema is the part of a JSON schema that values.schema.json uses.
type schema struct {
	Description          string            `json:"description"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties any               `json:"additionalProperties"`
	Enum                 []any             `json:"enum"`
}

func readValues(t *testing.T) (schema, map[string]any) {
	t.Helper()
	var described schema
	content, err := os.ReadFile(filepath.Join(chartPath, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &described); err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	content, err = os.ReadFile(filepath.Join(chartPath, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, &values); err != nil {
		t.Fatal(err)
	}
	return described, values
}

func TestTheREADMEListsEveryValue(t *testing.T) {
	path := filepath.Join(chartPath, "README.md")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	readme := string(content)
	begin := strings.Index(readme, "<!-- values: begin")
	end := strings.Index(readme, "<!-- values: end -->")
	if begin < 0 || end < begin {
		t.Fatalf("%s has no marks around its table of values", path)
	}
	begin += strings.Index(readme[begin:], "\n") + 1

	described, values := readValues(t)
	table := "\n| value | default | meaning |\n|---|---|---|\n" + strings.Join(rows(t, "", described, values), "") + "\n"
	golden(t, path, readme[:begin]+table+readme[end:])
}

// rows describes the values below a path, one a row, in the order of their
// names. Every value is in the schema and in values.yaml, and described.
func rows(t *testing.T, path string, described schema, values map[string]any) []string {
	t.Helper()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(described.Properties)) {
		property, value := described.Properties[name], values[name]
		full := strings.TrimPrefix(path+"."+name, ".")
		if property.Description == "" {
			t.Errorf("values.schema.json says nothing about %s", full)
		}
		if _, there := values[name]; !there {
			if full != "global" && full != "enabled" {
				t.Errorf("values.yaml has no %s", full)
			}
			continue
		}
		if nested, ok := value.(map[string]any); ok && len(property.Properties) > 0 {
			if property.AdditionalProperties != false {
				t.Errorf("values.schema.json does not refuse what it does not know in %s", full)
			}
			lines = append(lines, rows(t, full, property, nested)...)
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		meaning := property.Description
		if len(property.Enum) > 0 {
			meaning = fmt.Sprintf("%s One of %s.", meaning, list(property.Enum))
		}
		lines = append(lines, fmt.Sprintf("| `%s` | `%s` | %s |\n", full, encoded, meaning))
	}
	for name := range values {
		if _, there := described.Properties[name]; !there {
			t.Errorf("values.schema.json has no %s", strings.TrimPrefix(path+"."+name, "."))
		}
	}
	return lines
}

func list(values []any) string {
	var names []string
	for _, value := range values {
		names = append(names, fmt.Sprintf("`%v`", value))
	}
	return strings.Join(names, ", ")
}
