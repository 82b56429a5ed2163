// SPDX-License-Identifier: Apache-2.0

// Package docs checks the documentation: links have targets, and the resources and profile files in it are valid.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

var (
	link   = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)
	fenced = regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```")
)

func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"../*.md", "*.md", "*/*.md", "*/*/*.md", "../charts/*/*.md", "../hack/*/*.md", "../clients/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(text)
		}
	}
	if len(texts) < 5 {
		t.Fatalf("found %d documents, expected the README and those in docs", len(texts))
	}
	return texts
}

func TestEveryRelativeLinkLeadsToAFile(t *testing.T) {
	for file, text := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target := match[1]
			if strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", file, target)
			}
		}
	}
}

func TestEveryProfileInTheDocumentationIsAccepted(t *testing.T) {
	files, resources := 0, 0
	for file, text := range documents(t) {
		for _, match := range fenced.FindAllStringSubmatch(text, -1) {
			block := match[1]
			switch {
			case strings.HasPrefix(block, "# "+profile.FileName):
				files++
				if _, problems := profile.Compile(file, []byte(block)); len(problems) > 0 {
					t.Errorf("%s shows a profile file that a broker refuses: %v\n%s", file, problems.Err(), block)
				}
			case strings.Contains(block, "kind: CryptoProfile"):
				resources++
				var object v1alpha1.CryptoProfile
				accept(t, file, block, &object, &object.Spec, &object.Name)
			case strings.Contains(block, "kind: ClusterCryptoProfile"):
				resources++
				var object v1alpha1.ClusterCryptoProfile
				accept(t, file, block, &object, &object.Spec.ProfileSpec, &object.Name)
			}
		}
	}
	if files < 2 || resources < 3 {
		t.Errorf("checked %d profile files and %d resources, expected at least 2 and 3: is the pattern still right?", files, resources)
	}
}

func accept(t *testing.T, file, block string, object any, spec *v1alpha1.ProfileSpec, name *string) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(block), object); err != nil {
		t.Errorf("%s shows a resource that is no such resource: %v\n%s", file, err, block)
		return
	}
	if errs := render.Validate(*name, spec); len(errs) > 0 {
		t.Errorf("%s shows a profile that is refused: %v\n%s", file, errs.ToAggregate(), block)
	}
}
