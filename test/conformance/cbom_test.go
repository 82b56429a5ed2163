// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// cbomFile is what `kubectl crypto-broker inventory -o cyclonedx` prints. A test beside it checks that.
const cbomFile = "../../cmd/kubectl-crypto_broker/testdata/inventory.cdx.json"

// cycloneDXSchema compiles the published schema of CycloneDX 1.6, from the module of its library.
func cycloneDXSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for url, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		if err := compiler.AddResource("http://cyclonedx.org/schema/"+url, document(t, filepath.Join(strings.TrimSpace(string(dir)), "schema", file))); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// document reads a file of JSON.
func document(t *testing.T, file string) any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTheCBOMOfAnInventoryIsValidCycloneDX(t *testing.T) {
	schema, bom := cycloneDXSchema(t), document(t, cbomFile)
	if err := schema.Validate(bom); err != nil {
		t.Error(err)
	}
	bom.(map[string]any)["components"].([]any)[0].(map[string]any)["cryptoProperties"].(map[string]any)["assetType"] = "algorithms"
	if schema.Validate(bom) == nil {
		t.Error("a type of asset that there is not is valid")
	}
}

func TestTheReferencesOfTheCBOMAreItsComponents(t *testing.T) {
	file, err := os.Open(cbomFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	components := map[string]cyclonedx.ComponentType{}
	for _, c := range *bom.Components {
		if components[c.BOMRef] != "" {
			t.Errorf("two components are %q", c.BOMRef)
		}
		components[c.BOMRef] = c.Type
		if (c.Type == cyclonedx.ComponentTypeCryptographicAsset) != (c.CryptoProperties != nil) {
			t.Errorf("%q has the type %s and the properties %+v", c.BOMRef, c.Type, c.CryptoProperties)
		}
	}
	for _, d := range *bom.Dependencies {
		if components[d.Ref] != cyclonedx.ComponentTypeApplication || len(*d.Dependencies) == 0 {
			t.Errorf("%q is a %s with the dependencies %v", d.Ref, components[d.Ref], d.Dependencies)
		}
		for _, ref := range *d.Dependencies {
			if components[ref] != cyclonedx.ComponentTypeCryptographicAsset {
				t.Errorf("%q depends on %q, which is no algorithm", d.Ref, ref)
			}
		}
	}
}
