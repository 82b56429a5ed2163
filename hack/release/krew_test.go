// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// plugin is the manifest of a plugin, krew.googlecontainertools.github.com/v1alpha2.
type plugin struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Version          string
		ShortDescription string `yaml:"shortDescription"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			URI, SHA256, Bin string
			Files            []map[string]string
		}
	}
}

func TestTheManifestHasWhatKrewDemands(t *testing.T) {
	folder := t.TempDir()
	r := &release{options: options{out: folder, url: "https://example.com/v0.2.0/"}, root: root, version: "v0.2.0"}
	platforms := []platform{{"linux", "amd64"}, {"windows", "amd64"}}
	var downloads []download
	for _, p := range platforms {
		binary := filepath.Join(t.TempDir(), "program")
		write(t, binary, "program of "+p.os)
		d, err := r.packPlugin(p, binary)
		if err != nil {
			t.Fatal(err)
		}
		downloads = append(downloads, d)
	}
	if err := r.writeManifest(downloads); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "crypto-broker.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The fields that krew documents, and the fields that it requires.
	var found map[string]any
	if err := yaml.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	fields(t, "", found, []string{"apiVersion", "kind", "metadata", "spec"}, nil)
	fields(t, "metadata", found["metadata"], []string{"name"}, nil)
	fields(t, "spec", found["spec"], []string{"version", "platforms", "shortDescription"}, []string{"homepage", "description", "caveats"})
	var read plugin
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if read.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || read.Kind != "Plugin" || read.Metadata.Name != "crypto-broker" || read.Spec.Version != "v0.2.0" {
		t.Errorf("found\n%s", text)
	}
	if length := len(read.Spec.ShortDescription); length == 0 || length > 50 || strings.HasSuffix(read.Spec.ShortDescription, ".") {
		t.Errorf("found the short description %q, expected up to 50 characters without a full stop", read.Spec.ShortDescription)
	}
	seen := map[string]bool{}
	for i, p := range found["spec"].(map[string]any)["platforms"].([]any) {
		fields(t, "platform", p, []string{"uri", "sha256", "bin", "selector"}, []string{"files"})
		d := read.Spec.Platforms[i]
		key := d.Selector.MatchLabels["os"] + "/" + d.Selector.MatchLabels["arch"]
		if seen[key] || len(d.Selector.MatchLabels) != 2 {
			t.Errorf("found the selector %v, expected another platform for each", d.Selector.MatchLabels)
		}
		seen[key] = true
		data, err := os.ReadFile(filepath.Join(folder, strings.TrimPrefix(d.URI, "https://example.com/v0.2.0/")))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); d.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: found the checksum %s", key, d.SHA256)
		}
		files, err := unpack(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, copied := range d.Files {
			if !slices.ContainsFunc(files, func(f file) bool { return f.name == copied["from"] }) || copied["to"] != "." || len(copied) != 2 {
				t.Errorf("%s: the archive has %v, and the manifest copies %v", key, files, copied)
			}
		}
		if !slices.ContainsFunc(d.Files, func(copied map[string]string) bool { return copied["from"] == d.Bin }) {
			t.Errorf("%s: the program %s is not among the files", key, d.Bin)
		}
	}
	if len(seen) != len(platforms) {
		t.Errorf("found %v", seen)
	}
}

// fields fails the test unless an object has all required fields, and otherwise only optional ones.
func fields(t *testing.T, what string, object any, demanded, optional []string) {
	t.Helper()
	all, is := object.(map[string]any)
	if !is {
		t.Fatalf("%s is %v, expected an object", what, object)
	}
	for _, name := range demanded {
		if all[name] == nil {
			t.Errorf("%s has no %s", what, name)
		}
	}
	for name := range all {
		if !slices.Contains(demanded, name) && !slices.Contains(optional, name) {
			t.Errorf("%s has %s, which krew does not know", what, name)
		}
	}
}
