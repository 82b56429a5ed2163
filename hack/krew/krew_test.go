// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestTheManifestHasWhatKrewDemands(t *testing.T) {
	folder := t.TempDir()
	var archives []archive
	for _, p := range platforms {
		a, err := pack(folder, p, "v0.2.0", []byte("program of "+p.String()), []byte("license"))
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, a)
	}
	text, err := manifest("v0.2.0", "https://example.com/v0.2.0", archives)
	if err != nil {
		t.Fatal(err)
	}
	// The fields that krew documents, and the fields that it requires.
	var found map[string]any
	if err := yaml.UnmarshalStrict(text, &found); err != nil {
		t.Fatal(err)
	}
	fields(t, "", found, []string{"apiVersion", "kind", "metadata", "spec"}, nil)
	fields(t, "metadata", found["metadata"], []string{"name"}, nil)
	fields(t, "spec", found["spec"], []string{"version", "platforms", "shortDescription"}, []string{"homepage", "description", "caveats"})
	var read plugin
	if err := yaml.UnmarshalStrict(text, &read); err != nil {
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
		names := unpacked(t, data)
		for _, f := range d.Files {
			if !slices.Contains(names, f.From) || f.To != "." {
				t.Errorf("%s: the archive has %q, and the manifest copies %+v", key, names, f)
			}
		}
		if !slices.ContainsFunc(d.Files, func(f file) bool { return f.From == d.Bin }) {
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

func unpacked(t *testing.T, data []byte) (names []string) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

func TestWrongInputOfAReleaseIsRefused(t *testing.T) {
	for sentence, test := range map[string]struct {
		arguments []string
		says      string
	}{
		"no version":                      {[]string{"--url", "https://example.com"}, `--version is ""`},
		"a version without v":             {[]string{"--version", "0.2.0", "--url", "https://example.com"}, `--version is "0.2.0", expected one such as v0.2.0`},
		"a URL without encryption":        {[]string{"--version", "v0.2.0", "--url", "http://example.com"}, `expected the https URL of a folder`},
		"a platform that no release has":  {[]string{"--version", "v0.2.0", "--url", "https://example.com", "--platforms", "plan9/amd64"}, `--platforms has "plan9/amd64"`},
		"a flag that the program has not": {[]string{"--release"}, "unknown flag: --release"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if err := run(t.Context(), test.arguments); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("found %v, expected %q", err, test.says)
			}
		})
	}
}
