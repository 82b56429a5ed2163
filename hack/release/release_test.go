// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// root is the checkout that the tests are in.
const root = "../.."

func TestAllPartsOfThisCheckoutStateOneVersion(t *testing.T) {
	if version, err := statedVersion(root); err != nil || !strings.HasPrefix(version, "v") {
		t.Errorf("found the version %q, %v", version, err)
	}
}

func TestTheChartAsksForTheImagesOfTheRelease(t *testing.T) {
	version, err := statedVersion(root)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(root, "config", "manager", "deployment.yaml")) // rendered from the chart with its default values
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"operator", "broker"} {
		if want := "ghcr.io/crypto-broker/" + name + ":" + imageTag(version); !regexp.MustCompile(regexp.QuoteMeta(want) + `"?\n`).Match(manifest) {
			t.Errorf("found no image %s in the chart, which is what the release calls it", want)
		}
	}
}

func TestTheCommitOfAReleasedVersionIsKnown(t *testing.T) {
	const versions = "# v1.0.0 is a comment\nv1.0.0 c0ffee\nv1.0.10 decade\n"
	for version, want := range map[string]string{"v1.0.0": "c0ffee", "v1.0.10": "decade", "v1.0.1": ""} {
		if got := releasedFrom(versions, version); got != want {
			t.Errorf("%s: found the commit %q, expected %q", version, got, want)
		}
	}
}

func TestAVersionThatIsNotTheSameEverywhereIsRefused(t *testing.T) {
	good := map[string]string{
		"charts/crypto-broker-operator/Chart.yaml": "version: 1.2.3\nappVersion: 1.2.3\n",
		"clients/js/package.json":                  "{\n  \"version\": \"1.2.3\",\n}\n",
		"clients/js/package-lock.json":             "{\n  \"version\": \"1.2.3\",\n}\n",
		"clients/python/pyproject.toml":            "[project]\nversion = \"1.2.3\"\n",
		"clients/java/pom.xml":                     "<project>\n  <version>1.2.3</version>\n",
		"clients/rust/Cargo.toml":                  "[package]\nversion = \"1.2.3\"\n",
	}
	for sentence, test := range map[string]struct{ file, content, want string }{
		"the same version":             {want: "v1.2.3"},
		"an image that differs":        {"charts/crypto-broker-operator/Chart.yaml", "version: 1.2.3\nappVersion: 1.2.4\n", "charts/crypto-broker-operator/Chart.yaml states the version 1.2.3 and charts/crypto-broker-operator/Chart.yaml states 1.2.4, expected the same"},
		"a client that differs":        {"clients/python/pyproject.toml", "version = \"1.3.0\"\n", "charts/crypto-broker-operator/Chart.yaml states the version 1.2.3 and clients/python/pyproject.toml states 1.3.0, expected the same"},
		"a file without a version":     {"clients/js/package.json", "{}\n", "clients/js/package.json states no version, expected a line that matches"},
		"a version that is not one":    {"charts/crypto-broker-operator/Chart.yaml", "version: 1.2\nappVersion: 1.2\n", `charts/crypto-broker-operator/Chart.yaml states the version "1.2", expected one such as 1.2.3 or 1.2.3-rc.1`},
		"a version with build numbers": {"charts/crypto-broker-operator/Chart.yaml", "version: 1.2.3+4\nappVersion: 1.2.3\n", `states the version "1.2.3+4", expected one such as`},
	} {
		t.Run(sentence, func(t *testing.T) {
			folder := t.TempDir()
			for name, content := range good {
				if name == test.file {
					content = test.content
				}
				write(t, filepath.Join(folder, name), content)
			}
			version, err := statedVersion(folder)
			if err != nil {
				version = err.Error()
			}
			if !strings.Contains(version, test.want) {
				t.Errorf("found %q, expected %q", version, test.want)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFilesThatAreNotCommittedAreRefused(t *testing.T) {
	folder := t.TempDir()
	for _, arguments := range [][]string{
		{"init", "--quiet"},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "--message", "first"},
	} {
		if _, err := output(t.Context(), folder, "git", arguments...); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(folder, "new"), "")
	t.Chdir(folder)
	if err := new(release).checkout(t.Context()); err == nil || !strings.Contains(err.Error(), "found files that differ from the commit, expected none:\n?? new") {
		t.Errorf("found %v", err)
	}
}

func TestATagThatIsNotTheVersionOfTheFilesIsRefused(t *testing.T) {
	folder := t.TempDir()
	for _, place := range stating {
		content, err := os.ReadFile(filepath.Join(root, place.file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, place.file), string(content))
	}
	version, err := statedVersion(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	run := func(arguments ...string) {
		t.Helper()
		if _, err := output(t.Context(), folder, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, arguments...)...); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "--quiet")
	run("add", ".")
	run("commit", "--quiet", "--message", "first")
	r := new(release)
	if err := r.checkout(t.Context()); err != nil || r.version != version || r.url != home+"/releases/download/"+version {
		t.Errorf("without a tag: found %s at %s, %v", r.version, r.url, err)
	}
	run("tag", "v99.0.0")
	if err := new(release).checkout(t.Context()); err == nil || err.Error() != "the commit has the tag v99.0.0, and its files state "+version+", expected the same" {
		t.Errorf("with another tag: found %v", err)
	}
	run("tag", version)
	if err := new(release).checkout(t.Context()); err != nil {
		t.Errorf("with its own tag, too: found %v", err)
	}
}

func TestAPackageWithoutItsCodeIsRefused(t *testing.T) {
	content, err := tarGz([]file{{"package/README.md", 0o644, nil}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "package.tgz")
	write(t, path, string(content))
	if err := holds(path, "package/README.md"); err != nil {
		t.Error(err)
	}
	if err := holds(path, "package/dist/index.js"); err == nil || err.Error() != path+" has no package/dist/index.js" {
		t.Errorf("found %v", err)
	}
}

func TestWrongOptionsAreRefusedWithWhatWasExpected(t *testing.T) {
	for sentence, test := range map[string]struct{ arguments, want string }{
		"a part that there is not": {"--parts=chart,charts", `--parts names "charts", expected some of programs, images, chart, plugin, clients`},
		"a URL without encryption": {"--url=http://example.com", `--url is "http://example.com", expected the https URL of a folder`},
		"an argument":              {"v1.2.3", `found the argument "v1.2.3", expected options only; --help shows them`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := parseOptions(strings.Fields(test.arguments)); err == nil || err.Error() != test.want {
				t.Errorf("found %v, expected %q", err, test.want)
			}
		})
	}
}

func TestAFolderWithFilesIsRefused(t *testing.T) {
	folder := t.TempDir()
	if err := emptyFolder(folder); err != nil {
		t.Error(err)
	}
	write(t, filepath.Join(folder, "old.tar.gz"), "")
	if err := emptyFolder(folder); err == nil || err.Error() != "--out is "+folder+", which has 1 files, expected an empty folder" {
		t.Errorf("found %v", err)
	}
}

func TestAnArchiveThatIsPackedAgainDependsOnItsFilesOnly(t *testing.T) {
	packed := func(at time.Time, names ...string) []byte {
		var content bytes.Buffer
		compressed := gzip.NewWriter(&content)
		compressed.ModTime = at
		archive := tar.NewWriter(compressed)
		for _, name := range names {
			header := tar.Header{Name: name, Mode: 0o600, Size: int64(len(name)), ModTime: at, Uid: at.Second()}
			if err := archive.WriteHeader(&header); err != nil {
				t.Fatal(err)
			}
			if _, err := archive.Write([]byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		if err := compressed.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := repack(content.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	first := packed(time.Unix(1, 0), "a", "b")
	if !bytes.Equal(first, packed(time.Unix(2_000_000_000, 0), "b", "a")) {
		t.Error("another time, owner or order gives other bytes")
	}
	if bytes.Equal(first, packed(time.Unix(1, 0), "a", "c")) {
		t.Error("other files give the same bytes")
	}
}

func TestABillOfMaterialsIsValidCycloneDXAndNamesTheModulesOfTheProgram(t *testing.T) {
	binary, err := os.Executable() // it was built from Go modules, as any program is
	if err != nil {
		t.Fatal(err)
	}
	debian := debianPackage{"libssl3", "3.0.22-1~deb12u2", "amd64", strings.Repeat("0f", 32)}
	text, err := billOf("release-v1.2.3-linux-amd64", binary, "v1.2.3", time.Unix(1_700_000_000, 0).UTC(), debian.component())
	if err != nil {
		t.Fatal(err)
	}
	bill, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schemaOfCycloneDX(t).Validate(bill); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`"purl": "pkg:golang/github.com/cyclonedx/cyclonedx-go@v0.12.0"`,
		`"bom-ref": "std@`,
		`"purl": "pkg:deb/debian/libssl3@3.0.22-1~deb12u2?arch=amd64\u0026distro=debian-12"`,
		`"timestamp": "2023-11-14T22:13:20Z"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("found no %s in\n%s", want, text)
		}
	}
	again, err := billOf("release-v1.2.3-linux-amd64", binary, "v1.2.3", time.Unix(1_700_000_000, 0).UTC(), debian.component())
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("a second bill of the same program differs, %v", err)
	}
}

// schemaOfCycloneDX compiles the published schema of CycloneDX 1.6, from the module of its library.
func schemaOfCycloneDX(t *testing.T) *jsonschema.Schema {
	t.Helper()
	folder, err := output(t.Context(), ".", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for url, name := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		text, err := os.ReadFile(filepath.Join(folder, "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource("http://cyclonedx.org/schema/"+url, document); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestTheProvenanceAndTheBillsNameThePackagesOfTheLockFile(t *testing.T) {
	packages, err := debianPackages(root)
	if err != nil || len(packages) != 4 {
		t.Fatalf("found %v, %v", packages, err)
	}
	r := &release{debian: packages}
	named := map[string]string{}
	for _, each := range r.statement(nil, "go1").Predicate.BuildDefinition.ResolvedDependencies {
		named[each.URI] = each.Digest["sha256"]
	}
	for _, each := range packages {
		if len(each.sha256) != 64 || named[each.purl()] != each.sha256 {
			t.Errorf("the provenance has %v, expected %s", named, each.purl())
		}
	}
	folder := t.TempDir()
	write(t, filepath.Join(folder, "hack", "image", "debian.lock"), "libssl3 3.0.22-1\n")
	if _, err := debianPackages(folder); err == nil || !strings.Contains(err.Error(), `found the line "libssl3 3.0.22-1", expected a name`) {
		t.Errorf("found the error %v", err)
	}
}

func TestAReleaseIsCheckedByTheToolsThatItsPageNames(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := t.TempDir()
	private, public := filepath.Join(keys, "private.pem"), filepath.Join(keys, "public.pem")
	writeKey(t, private, key)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	write(t, public, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	out := t.TempDir()
	write(t, filepath.Join(out, "broker.tar.gz"), "a program")
	write(t, filepath.Join(out, "chart.tgz"), "a chart")
	r := &release{options: options{out: out, key: private, parts: []string{"chart"}, builder: "https://example.org/builder"}, root: root, version: "v1.2.3", commit: "c0ffee"}
	if err := r.describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func() (sums, signature error) {
		command := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", checksumsFile)
		command.Dir = out
		_, sums = printed(command)
		command = exec.CommandContext(t.Context(), "openssl", "dgst", "-sha256", "-verify", public, "-signature", signatureFile, checksumsFile)
		command.Dir = out
		_, signature = printed(command)
		return sums, signature
	}
	if sums, signature := check(); sums != nil || signature != nil {
		t.Errorf("the checksums: %v, the signature: %v", sums, signature)
	}
	var found statement
	text, err := os.ReadFile(filepath.Join(out, provenanceFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("a chart"))
	if len(found.Subject) != 2 || found.Subject[1].Name != "chart.tgz" || found.Subject[1].Digest["sha256"] != hex.EncodeToString(sum[:]) {
		t.Errorf("the provenance has the subjects %+v", found.Subject)
	}
	if commit := found.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"]; commit != "c0ffee" {
		t.Errorf("the provenance has the commit %q", commit)
	}
	for _, name := range []string{"broker.tar.gz", provenanceFile} {
		before, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(out, name), string(before)+" ")
		if sums, _ := check(); sums == nil {
			t.Errorf("%s was changed, and nothing notices it", name)
		}
		write(t, filepath.Join(out, name), string(before))
	}
	sums, err := os.ReadFile(filepath.Join(out, checksumsFile))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(out, checksumsFile), strings.Replace(string(sums), "chart", "short", 1))
	if _, signature := check(); signature == nil {
		t.Error("the checksums were changed, and their signature still holds")
	}
}

func writeKey(t *testing.T, path string, key any) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

func TestASignatureOfTheSameChecksumsIsTheSame(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	writeKey(t, path, key)
	first, err := sign(path, []byte("sums"))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := sign(path, []byte("sums")); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second signature differs, %v", err)
	}
}

func TestAKeyThatCannotSignIsRefused(t *testing.T) {
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	writeKey(t, filepath.Join(folder, "ed25519"), other)
	write(t, filepath.Join(folder, "text"), "no key")
	for name, want := range map[string]string{
		"ed25519": "--key is %s with a key of the type ed25519.PrivateKey, expected ECDSA",
		"text":    `--key is %s, expected one block "PRIVATE KEY" of PEM`,
	} {
		path := filepath.Join(folder, name)
		if _, err := sign(path, nil); err == nil || err.Error() != fmt.Sprintf(want, path) {
			t.Errorf("found %v, expected %s", err, want)
		}
	}
}
