// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryDocumentIsInTheTableOfContents(t *testing.T) {
	contents, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, pattern := range []string{"*.md", "*/README.md"} {
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
