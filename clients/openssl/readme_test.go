// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTheCodeOfTheReadmeIsThatOfTheExamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) == 0 {
		t.Error("found no code: is the pattern still right?")
	}
	for _, block := range blocks {
		indented := "\t" + strings.ReplaceAll(strings.TrimSuffix(block[1], "\n"), "\n", "\n\t") + "\n"
		if !strings.Contains(string(examples), indented) {
			t.Errorf("no example has the code\n%s", block[1])
		}
	}
}
