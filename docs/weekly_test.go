// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// leftOut finds the targets of the Makefile that say so.
var leftOut = regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## .*not part of "make test"`)

func TestTheWeeklyWorkflowRunsWhatMakeTestLeavesOut(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../.github/workflows/weekly.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs struct {
			Make struct {
				Strategy struct {
					Matrix struct{ Target []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	var run []string
	for _, target := range workflow.Jobs.Make.Strategy.Matrix.Target {
		name, _, _ := strings.Cut(target, " ")
		run = append(run, name)
		if !strings.Contains(string(makefile), "\n"+name+":") {
			t.Errorf("the workflow runs %q, which is no target of the Makefile", name)
		}
	}
	found := leftOut.FindAllStringSubmatch(string(makefile), -1)
	for _, match := range found {
		if !slices.Contains(run, match[1]) {
			t.Errorf("the workflow does not run %q, expected all targets that are not part of make test", match[1])
		}
	}
	if len(found) == 0 {
		t.Error(`found no target that says that it is not part of "make test"`)
	}
}
