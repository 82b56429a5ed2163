// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

// blockOfGuide matches commands of a guide and their output.
var blockOfGuide = regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```")

func TestTheGuideOfKeyManagersWorksAsItIsWritten(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "encrypt-with-a-key-manager.md"))
	if err != nil {
		t.Fatal(err)
	}
	bao := openbao.Start(t)
	var script strings.Builder
	var expected []string
	for _, block := range blockOfGuide.FindAllStringSubmatch(string(text), -1) {
		if block[1] == "text" {
			expected = append(expected, block[2])
			fmt.Fprintf(&script, "echo '=== %d'\n", len(expected))
			continue
		}
		script.WriteString(block[2])
	}
	if len(expected) < 5 {
		t.Fatalf("the guide shows %d times what commands print, expected at least 5", len(expected))
	}
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script.String())
	command.Dir = newSandbox(t).dir
	command.Env = append(os.Environ(), "PATH="+binaries+":"+openbao.Programs(t)+":"+os.Getenv("PATH"), "HOME="+command.Dir,
		"BAO_ADDR="+bao.URL, "BAO_CACERT="+bao.Authority, "BAO_TOKEN="+bao.Token)
	var errs strings.Builder
	command.Stderr = &errs
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, errs.String())
	}
	rest := string(output)
	for i, want := range expected {
		printed, after, ended := strings.Cut(rest, fmt.Sprintf("=== %d\n", i+1))
		if !ended || !strings.HasSuffix(printed, want) {
			t.Errorf("found\n%s\nexpected at its end\n%s\n%s", printed, want, errs.String())
		}
		rest = after
	}
}
