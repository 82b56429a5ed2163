// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// Helm takes a value away that is null. Without the policy of a value, or without a number, the
// chart would render something that nobody asked for.
func TestAValueWithADefaultCannotBeTakenAway(t *testing.T) {
	var schema map[string]any
	content, err := os.ReadFile(filepath.Join(chartPath, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	checked := 0
	var check func(path string, values, schema map[string]any)
	check = func(path string, values, schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for name, value := range values {
			inner, isMap := value.(map[string]any)
			property, _ := properties[name].(map[string]any)
			_, isFixed := property["properties"]
			switch {
			case isEmpty(value), isMap && !isFixed, canBeTakenAway[path+"."+name]:
				continue
			case !slices.Contains(required, any(name)):
				t.Errorf("values.schema.json does not require %s.%s, which has the default %v", path, name, value)
			}
			checked++
			if isMap {
				check(path+"."+name, inner, property)
			}
		}
	}
	check("", defaults(t), schema)
	if checked < 100 {
		t.Errorf("found %d values with a default, expected more than a hundred", checked)
	}
}

// canBeTakenAway are values with a default that count as none if they are null.
var canBeTakenAway = map[string]bool{
	".podDisruptionBudget.maxUnavailable":   true,
	".topologySpreadConstraints":            true,
	".keyGateway.topologySpreadConstraints": true,
	".keyAccess.topologySpreadConstraints":  true,
}

func TestWhatIsEmptyByDefaultMayBeNull(t *testing.T) {
	null := func(values map[string]any, names ...string) {
		for _, name := range names {
			values[name] = nil
		}
	}
	values := defaults(t)
	var empty func(map[string]any)
	empty = func(values map[string]any) {
		for name, value := range values {
			if inner, is := value.(map[string]any); is {
				empty(inner)
			}
			if isEmpty(value) {
				values[name] = nil
			}
		}
	}
	empty(values)
	null(values, "resources", "livenessProbe", "readinessProbe", "podSecurityContext", "securityContext", "nodeSelector", "topologySpreadConstraints")
	null(values["keyGateway"].(map[string]any), "resources", "nodeSelector", "topologySpreadConstraints")
	null(values["podDisruptionBudget"].(map[string]any), "maxUnavailable")
	values["podDisruptionBudget"].(map[string]any)["minAvailable"] = 1
	content, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	rendered, err := templateAll(t.Context(), "--values", file, "--set", "keyGateway.enabled=true,metrics.podMonitor.enabled=true,metrics.serviceMonitor.enabled=true,catalogue.enabled=true,alerts.enabled=true,dashboard.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	parse(t, rendered)
}

func defaults(t *testing.T) (values map[string]any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chartPath, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// isEmpty reports whether a value is an empty text, list or map.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}
