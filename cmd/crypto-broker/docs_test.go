// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// codeBlock finds the blocks of a document with their languages.
var codeBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")

func TestTheExamplesInTheDocumentationPrintWhatItShows(t *testing.T) {
	for _, document := range []string{"fips.md", "operations/list-profiles.md"} {
		t.Run(document, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "..", "docs", document))
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			var command []string
			ran := 0
			for _, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
				switch content := block[2]; {
				case block[1] == "yaml":
					if err := os.WriteFile("Profiles.yaml", []byte(content), 0o600); err != nil {
						t.Fatal(err)
					}
				case block[1] == "sh" && strings.HasPrefix(content, "crypto-broker "):
					command = strings.Fields(content)[1:]
				case block[1] == "text" && len(command) > 0:
					if diff := cmp.Diff(executed{0, content, ""}, execute(t, "", slices.Clone(command)...), cmp.AllowUnexported(executed{})); diff != "" {
						t.Errorf("%v (-document +printed):\n%s", command, diff)
					}
					command = nil
					ran++
				}
			}
			if ran == 0 || command != nil {
				t.Errorf("%d examples were run, and of %v the document does not show what it prints", ran, command)
			}
		})
	}
}
