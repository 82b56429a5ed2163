// SPDX-License-Identifier: Apache-2.0

//go:build process

package main

import (
	"os"
	"os/exec"
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

func TestTheExamplesForTheCommandLineRun(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "command-line.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSandbox(t)
	var printed string
	ran := 0
	for _, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		switch block[1] {
		case "yaml":
			s.write("profiles/Profiles.yaml", block[2])
			s.start()
		case "sh":
			bash := exec.Command("bash", "-euo", "pipefail", "-c", block[2])
			bash.Dir = s.dir
			bash.Env = append(os.Environ(), "PATH="+binaries+":"+os.Getenv("PATH"), "CRYPTO_BROKER_SOCKET="+s.socket)
			bash.Stderr = os.Stderr // of openssl
			output, err := bash.Output()
			if err != nil {
				t.Fatalf("%v in\n%s", err, block[2])
			}
			printed = string(output)
			ran++
		case "text":
			if diff := cmp.Diff(block[2], printed); diff != "" {
				t.Errorf("(-document +printed):\n%s", diff)
			}
		}
	}
	if ran != 3 {
		t.Errorf("%d examples were run, expected 3", ran)
	}
}
