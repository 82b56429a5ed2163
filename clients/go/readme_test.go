// SPDX-License-Identifier: Apache-2.0

package cryptobroker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

func TestTheProgramsOfTheReadmeRunAsTheyAre(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	outputs := []string{
		"sha-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n",
		"4711 boxes\nFAILED_PRECONDITION SignData Orders\n",
	}
	programs := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(programs) != len(outputs) {
		t.Fatalf("found %d programs, expected %d", len(programs), len(outputs))
	}
	for i, program := range programs {
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, program[1], 0o600); err != nil {
			t.Fatal(err)
		}
		// The program imports the module of this folder, and uses the socket of the examples.
		output, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
		if err != nil || string(output) != outputs[i] {
			t.Errorf("the program printed %q and ended with %v, expected %q:\n%s", output, err, outputs[i], program[1])
		}
	}
}
