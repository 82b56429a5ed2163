// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryDocumentIsInTheTableOfContents(t *testing.T) {
	contents, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, pattern := range []string{"*.md", "*/README.md", "reports/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, files...)
	}
	for _, file := range documents {
		if file != "README.md" && !strings.Contains(string(contents), "]("+file+")") && !strings.Contains(string(contents), "]("+file+"#") {
			t.Errorf("docs/README.md has no link to %s", file)
		}
	}
}

// A release is described as it was. What is clearer now or was found later belongs to the next one.
func TestTheChangesOfReleasesStayAsTheyWere(t *testing.T) {
	changes, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(changes), "\n## ")
	for release, want := range map[string]string{
		"0.1.0 ": "47556671ec7abd32760860b45993f403f5db559f64d9a6ed515c24a8f7c2c839",
	} {
		at := slices.IndexFunc(sections, func(section string) bool { return strings.HasPrefix(section, release) })
		if at < 0 {
			t.Errorf("CHANGELOG.md has no section of %s", release)
			continue
		}
		if sum := sha256.Sum256([]byte(sections[at])); hex.EncodeToString(sum[:]) != want {
			t.Errorf("the section of %sin CHANGELOG.md has the digest %x, expected %s: put changes under Unreleased", release, sum, want)
		}
	}
}

// record is the head of a decision record: its number, its date and its state.
var record = regexp.MustCompile(`^# (\d{4}): \S.*\n\n20\d\d-\d\d-\d\d, accepted`)

var part = regexp.MustCompile(`(?m)^\*\*([A-Z][a-z ]+)\.\*\*`)

func TestDecisionsHaveOneForm(t *testing.T) {
	contents, err := os.ReadFile("decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("decisions/0*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no decision records: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		if head := record.FindSubmatch(text); head == nil || string(head[1]) != name[:4] {
			t.Errorf("%s does not begin with its number and title, then the date and \"accepted\"", file)
		}
		var parts []string
		for _, match := range part.FindAllSubmatch(text, -1) {
			parts = append(parts, string(match[1]))
		}
		for _, found := range parts {
			if !slices.Contains([]string{"Question", "Decision", "Measured", "Not chosen", "Costs"}, found) {
				t.Errorf("%s has the part %q, expected Question, Decision, Measured, Not chosen and Costs", file, found)
			}
		}
		if len(parts) < 3 || parts[0] != "Question" || !slices.Contains(parts, "Decision") || parts[len(parts)-1] != "Costs" {
			t.Errorf("%s has the parts %v, expected Question first, then Decision, and Costs last", file, parts)
		}
		if !strings.Contains(string(contents), "]("+name+")") {
			t.Errorf("decisions/README.md has no link to %s", name)
		}
	}
}

// span matches the path of a package in docs/architecture.md.
var span = regexp.MustCompile("`((?:api|broker|cmd|controllers|webhook)(?:/[a-z0-9_/-]+)?)`")

func TestTheMapHasEachPackageAndNoOther(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, match := range span.FindAllSubmatch(text, -1) {
		name := string(match[1])
		named[name] = true
		if _, err := os.Stat(filepath.Join("..", name)); err != nil {
			t.Errorf("architecture.md names %s, which is not there", name)
		}
	}
	for _, top := range []string{"api", "broker", "cmd", "controllers", "webhook"} {
		err := filepath.WalkDir(filepath.Join("..", top), func(file string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			name, err := filepath.Rel("..", filepath.Dir(file))
			name = filepath.ToSlash(name)
			if strings.HasPrefix(name, "api/grpc/") {
				name = "api/grpc"
			}
			if !named[name] {
				named[name] = true // once is enough
				t.Errorf("architecture.md has no line for %s, to which %s belongs", name, path.Base(filepath.ToSlash(file)))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
