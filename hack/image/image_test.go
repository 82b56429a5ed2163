// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// source makes a small repository whose programs print a text.
func source(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	for _, each := range programs {
		write(t, filepath.Join(folder, each.folder, "go.mod"), "module example.org/programs\n\ngo 1.26.0\n")
		write(t, filepath.Join(folder, each.folder, each.path, "main.go"),
			"package main\n\nvar version string\n\nfunc main() { println("+`"`+text+`"`+", version) }\n")
	}
	return folder
}

// withoutOpenSSL returns the programs without OpenSSL.
func withoutOpenSSL(t *testing.T) []program {
	t.Helper()
	chosen, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	return chosen
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// build builds all images and returns the archives' contents by file name.
func build(t *testing.T, arguments ...string) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	o, err := parseOptions(append([]string{"--out", out}, arguments...))
	if err != nil {
		t.Fatal(err)
	}
	if err := run(o); err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(filepath.Join(out, "*.tar"))
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string][]byte{}
	for _, each := range archives {
		content, err := os.ReadFile(each)
		if err != nil {
			t.Fatal(err)
		}
		contents[filepath.Base(each)] = content
	}
	return contents
}

func TestTheSameSourceGivesTheSameArchivesAndAnotherSourceAnotherTag(t *testing.T) {
	first, second := build(t, "--source", source(t, "one")), build(t, "--source", source(t, "one"))
	if len(first) != len(withoutOpenSSL(t)) {
		t.Fatalf("found %d archives, expected %d", len(first), len(withoutOpenSSL(t)))
	}
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s differs from a second build (whose archives are %v)", name, names(second))
		}
	}
	for name := range build(t, "--source", source(t, "two")) {
		if _, same := first[name]; same {
			t.Errorf("%s has the same tag although the program differs", name)
		}
	}
}

func names(contents map[string][]byte) (names []string) {
	for each := range contents {
		names = append(names, each)
	}
	return names
}

func TestAnImageHoldsItsProgramAndATmpAndRunsAsNobody(t *testing.T) {
	built := build(t, "--source", source(t, "one"), "--tag", "v1")
	for _, each := range withoutOpenSSL(t) {
		file := each.name + "-v1.tar"
		content := built[file]
		tag, err := name.NewTag("localhost/crypto-broker/" + each.name + ":v1")
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, &tag)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		configuration, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if found := configuration.Config; found.User != "65532:65532" || found.Entrypoint[0] != "/"+each.file {
			t.Errorf("%s runs %v as %s", file, found.Entrypoint, found.User)
		}
		if found := listing(t, image); found != "dtrwxrwxrwx tmp\n-rwxr-xr-x "+each.file+"\n" {
			t.Errorf("%s holds\n%s", file, found)
		}
	}
}

func TestProgramsHaveTheValidatedCryptographicModule(t *testing.T) {
	t.Setenv("GOFIPS140", "off") // the environment must not change the module
	out := t.TempDir()
	build(t, "--source", source(t, "one"), "--out", out)
	for _, each := range withoutOpenSSL(t) {
		info, err := buildinfo.ReadFile(filepath.Join(out, "bin", runtime.GOARCH, each.name))
		if err != nil {
			t.Fatal(err)
		}
		settings := map[string]string{}
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
		if !strings.HasPrefix(settings["GOFIPS140"], "v1.0.0") || !strings.Contains(settings["DefaultGODEBUG"], "fips140=on") {
			t.Errorf("%s was built with GOFIPS140=%q and runs with GODEBUG=%q", each.name, settings["GOFIPS140"], settings["DefaultGODEBUG"])
		}
	}
}

func listing(t *testing.T, image v1.Image) string {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	var list strings.Builder
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return list.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		list.WriteString(header.FileInfo().Mode().String() + " " + header.Name + "\n")
	}
}

func TestPushedImagesAreInTheRegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/crypto-broker"
	build(t, "--source", source(t, "one"), "--tag", "v1", "--push", repository)
	for _, each := range withoutOpenSSL(t) {
		tag, err := name.NewTag(repository + "/" + each.name + ":v1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Head(tag); err != nil {
			t.Errorf("%s: %v", each.name, err)
		}
	}
}

func TestALayoutHasOneImageForAllArchitecturesAndTheSameBytesEachTime(t *testing.T) {
	arguments := []string{"--oci", "--arch", "amd64,arm64", "--tag", "v1", "--version", "v1", "--only", "broker"}
	const file = "broker-v1.oci.tar"
	first := build(t, append(arguments, "--source", source(t, "one"))...)
	if second := build(t, append(arguments, "--source", source(t, "one"))...); len(first) != 1 || !bytes.Equal(first[file], second[file]) {
		t.Fatalf("built %v and %v, whose bytes differ", names(first), names(second))
	}
	folder := t.TempDir()
	for reader := tar.NewReader(bytes.NewReader(first[file])); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, header.Name), string(content))
	}
	whole, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := whole.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if found := manifest.Manifests; len(found) != 1 || found[0].Annotations[refName] != "v1" || found[0].MediaType != types.OCIImageIndex {
		t.Fatalf("the layout has %+v", found)
	}
	index, err := whole.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, each := range manifest.Manifests {
		platforms = append(platforms, each.Platform.String())
		image, err := index.Image(each.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(image); err != nil { // it reads all layers and compares the digests
			t.Error(err)
		}
		if found := listing(t, image); each.MediaType != types.OCIManifestSchema1 || found != "dtrwxrwxrwx tmp\n-rwxr-xr-x broker\n" {
			t.Errorf("the image for %s is of the type %s and holds\n%s", each.Platform, each.MediaType, found)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("the image is for %v", platforms)
	}
}

func TestOptions(t *testing.T) {
	for sentence, each := range map[string]struct {
		arguments []string
		says      string
	}{
		"a tag that no registry takes is refused": {[]string{"--tag", "-a b"}, `"-a b"`},
		"an argument is refused":                  {[]string{"all"}, `"all"`},
		"two architectures need a layout":         {[]string{"--arch", "amd64,arm64"}, `"amd64,arm64"`},
		"a layout needs a tag":                    {[]string{"--oci"}, "--tag"},
		"a layout is not pushed":                  {[]string{"--oci", "--tag", "v1", "--push", "registry.example"}, "--push"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := parseOptions(each.arguments); err == nil || !strings.Contains(err.Error(), each.says) {
				t.Errorf("found the error %v, expected one with %s", err, each.says)
			}
		})
	}
}

func TestAFolderWithoutSourceIsRefusedByName(t *testing.T) {
	empty := t.TempDir()
	if err := run(options{source: empty, out: t.TempDir()}); err == nil || !strings.Contains(err.Error(), empty) {
		t.Errorf("found the error %v, expected one that names %s", err, empty)
	}
}

func TestOnlyTheImagesThatAreNamedAreBuilt(t *testing.T) {
	built := build(t, "--source", source(t, "one"), "--tag", "v1", "--only", "cli,broker")
	if len(built) != 2 || built["cli-v1.tar"] == nil || built["broker-v1.tar"] == nil {
		t.Errorf("built %v", slices.Collect(maps.Keys(built)))
	}
	if _, err := parseOptions([]string{"--only", "broker,brokre"}); err == nil || !strings.Contains(err.Error(), `--only names "brokre", expected some of broker, operator, gateway, cli, `) {
		t.Errorf("a name that there is not: %v", err)
	}
}

func TestImagesWithOpenSSLAreBuiltWhereTheyAreNamed(t *testing.T) {
	for _, each := range withoutOpenSSL(t) {
		if each.openssl {
			t.Errorf("%s is among the images that need no network", each.name)
		}
	}
	chosen, err := choose("broker-openssl,gateway-openssl")
	if err != nil || len(chosen) != 2 || !chosen[0].openssl || !chosen[1].openssl {
		t.Errorf("found %v, %v", chosen, err)
	}
}

func TestPackagesThatTheLockFileDoesNotNameAreRefused(t *testing.T) {
	locked := debianPackage{name: "libssl3", version: "3.0.22-1", arch: "amd64", sum: "00ff"}
	folder := t.TempDir()
	write(t, filepath.Join(folder, lockFile), lockHeader+locked.line())
	if err := checkLock(folder, []debianPackage{locked}); err != nil {
		t.Error(err)
	}
	for sentence, change := range map[string]func(*debianPackage){
		"another version":      func(p *debianPackage) { p.version = "3.0.23-1" },
		"another architecture": func(p *debianPackage) { p.arch = "arm64" },
		"other bytes":          func(p *debianPackage) { p.sum = "00fe" },
		"a shorter name":       func(p *debianPackage) { p.name = "ssl3" },
	} {
		t.Run(sentence, func(t *testing.T) {
			found := locked
			change(&found)
			err := checkLock(folder, []debianPackage{locked, found})
			if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(found.line())) || !strings.Contains(err.Error(), "--write-lock") {
				t.Errorf("found the error %v, expected one that names the package and the option", err)
			}
		})
	}
}

func TestTheLockFileNamesEachPackageOnceForEachArchitecture(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", lockFile))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "#") {
			fields := strings.Fields(line)
			found = append(found, fields[0]+" "+fields[2])
		}
	}
	if expected := []string{"libc6 amd64", "libssl3 amd64", "libc6 arm64", "libssl3 arm64"}; !slices.Equal(found, expected) {
		t.Errorf("found %q, expected %q", found, expected)
	}
}
