// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/config/crd"
)

// fields finds the schema of a path below spec.api in each definition.
func fields(t *testing.T, path string) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	found := map[string]apiextensionsv1.JSONSchemaProps{}
	files, err := fs.Glob(crd.Definitions, "bases/*cryptoprofiles.yaml")
	if err != nil || len(files) != 2 {
		t.Fatalf("%d definitions: %v", len(files), err)
	}
	for _, file := range files {
		content, err := crd.Definitions.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &definition); err != nil {
			t.Fatal(err)
		}
		schema := *definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		for name := range strings.SplitSeq(strings.TrimSuffix("spec.api."+path, "."), ".") {
			schema = schema.Properties[name]
		}
		found[file] = schema
	}
	return found
}

func TestTheSchemaOffersExactlyTheAlgorithmsOfTheTable(t *testing.T) {
	sizes := algorithm.AESGCM.TagSizes()
	for path, want := range map[string]any{
		"hashData.hashAlg":           algorithm.Digests(algorithm.ForData),
		"signData.hashAlg":           algorithm.Digests(algorithm.ForSignatures),
		"signCertificate.hashAlg":    algorithm.Digests(algorithm.ForCertificates),
		"signCertificate.skiHashAlg": algorithm.Digests(algorithm.ForKeyIdentifiers),
		"signCertificate.signAlg":    algorithm.CertificateSignatures(),
		"encryptData.encryptAlg":     algorithm.Ciphers(),
		"encryptData.keySize":        algorithm.AESGCM.KeySizes(),
		"encryptData.shortTagLength": sizes[:len(sizes)-1],
		"dataKeys.keySize":           algorithm.AESGCM.KeySizes(),
		"session.keyAgreementAlg":    []string{algorithm.SessionKeyAgreement},
		"session.encryptAlg":         []string{algorithm.SessionCipher},
		"session.signAlg":            slices.Concat(algorithm.Signatures(algorithm.Classical), algorithm.Signatures(algorithm.PostQuantum)),
		"session.hashAlg":            algorithm.Digests(algorithm.ForSignatures),
	} {
		for file, schema := range fields(t, path) {
			if found := values(t, schema.Enum); !slices.Equal(found, values(t, raw(t, want))) {
				t.Errorf("%s: spec.api.%s offers %s, the table has %v", file, path, found, want)
			}
		}
	}
}

func TestTheSchemaOffersTheWrappingAlgorithmsOfTheTable(t *testing.T) {
	for file, schema := range fields(t, "dataKeys.wrapAlgs") {
		if found := values(t, schema.Items.Schema.Enum); !slices.Equal(found, values(t, raw(t, algorithm.Wrappings()))) {
			t.Errorf("%s: spec.api.dataKeys.wrapAlgs offers %s, the table has %v", file, found, algorithm.Wrappings())
		}
	}
}

func TestTheSchemaOffersTheProtocolsOfSessionsOfTheTable(t *testing.T) {
	for file, schema := range fields(t, "session.protocols") {
		if found := values(t, schema.Items.Schema.Enum); !slices.Equal(found, values(t, raw(t, algorithm.Sessions()))) {
			t.Errorf("%s: spec.api.session.protocols offers %s, the table has %v", file, found, algorithm.Sessions())
		}
	}
}

func TestTheSchemaHasTheOperationsOfTheTable(t *testing.T) {
	var want []string
	for _, row := range profile.Sections() {
		want = append(want, strings.ToLower(row.Name[:1])+row.Name[1:])
	}
	slices.Sort(want)
	for file, schema := range fields(t, "") {
		var found []string
		for name := range schema.Properties {
			found = append(found, name)
		}
		if slices.Sort(found); !slices.Equal(found, want) {
			t.Errorf("%s: spec.api has %q, the table has %q", file, found, want)
		}
	}
}

func raw(t *testing.T, list any) []apiextensionsv1.JSON {
	t.Helper()
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var all []apiextensionsv1.JSON
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// values are sorted, as JSON.
func values(t *testing.T, enum []apiextensionsv1.JSON) []string {
	t.Helper()
	var all []string
	for _, value := range enum {
		all = append(all, string(value.Raw))
	}
	slices.Sort(all)
	return all
}
