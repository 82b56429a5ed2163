// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// followedElsewhere are the guides that other tests follow: the test of upgrades here, and one of cmd/crypto-broker with OpenBao.
var followedElsewhere = []string{upgradeGuide, "encrypt-with-a-key-manager.md"}

// blocks matches commands of a guide, and what they print.
var blocks = regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```")

// created matches the namespaces that a guide makes.
var created = regexp.MustCompile(`(?m)^kubectl delete namespace (.*) --wait=false$`)

func TestTheGuidesWorkAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	programs := programsOfGuides(t)
	guides, err := filepath.Glob(filepath.Join(shared.Repository, "docs", "guides", "*.md"))
	must(t, err)
	count := 0
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		must(t, err)
		found := blocks.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 || slices.Contains(followedElsewhere, filepath.Base(guide)) {
			continue // the table of contents has no commands
		}
		count++
		t.Run(filepath.Base(guide), func(t *testing.T) {
			t.Parallel()
			follow(t, programs, string(text), found)
		})
	}
	if count < 8 {
		t.Errorf("found %d guides with commands, expected at least 8", count)
	}
}

// programsOfGuides returns a folder with the programs that guides use.
func programsOfGuides(t *testing.T) string {
	t.Helper()
	programs := t.TempDir()
	for name, folder := range map[string]string{"kubectl-crypto_broker": "cmd/kubectl-crypto_broker", "crypto-broker": "cmd/crypto-broker"} {
		if _, err := environment.Command(t.Context(), shared.Repository, os.Stderr, "go", "build", "-o", filepath.Join(programs, name), "./"+folder); err != nil {
			t.Fatal(err)
		}
	}
	kubectl, err := shared.cluster.Kubectl()
	must(t, err)
	must(t, os.Symlink(kubectl, filepath.Join(programs, "kubectl")))
	must(t, os.Symlink(shared.helm.Path(), filepath.Join(programs, "helm")))
	return programs
}

// follow runs the commands of a guide in one shell, and expects each line of its text blocks behind the commands before it.
func follow(t *testing.T, programs, text string, found [][]string) {
	t.Helper()
	removed := created.FindStringSubmatch(text)
	if removed == nil {
		t.Fatal("the guide does not remove its namespaces by one line: kubectl delete namespace … --wait=false")
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, namespace := range strings.Fields(removed[1]) {
			if t.Failed() {
				printDiagnostics(ctx, t, namespace, 5*time.Minute)
			}
			if _, err := shared.cluster.KubectlRun(ctx, nil, "delete", "namespace", namespace, "--ignore-not-found", "--wait=false"); err != nil {
				t.Error(err)
			}
		}
	})
	var script strings.Builder
	var expected []string
	for i, block := range found {
		if block[1] == "text" {
			expected = append(expected, block[2])
			fmt.Fprintf(&script, "echo '=== %d'\n", len(expected))
			continue
		}
		if i > 0 && found[i-1][1] == "text" {
			script.WriteString("\n")
		}
		script.WriteString(block[2])
	}
	output, errs := run(t, programs, script.String())
	for i, want := range expected {
		printed, after, ended := strings.Cut(output, fmt.Sprintf("=== %d\n", i+1))
		if !ended || !strings.HasSuffix(printed, want) {
			t.Errorf("found\n%s\nexpected at its end\n%s\n%s", printed, want, errs)
		}
		output = after
	}
}

// imageInGuides matches the name of an image in a guide.
var imageInGuides = regexp.MustCompile(`registry\.example/crypto-broker/(\w+):0\.1\.0`)

// run runs commands of a guide in one shell, with the images of the test, and returns what they print to both streams.
func run(t *testing.T, programs, script string) (output, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	script = imageInGuides.ReplaceAllString(script, shared.Images.Registry+"/$1:"+shared.Images.Tag)
	// No pipefail: if the reader of a pipe ends early, the writer fails, and that is no failure of the guide.
	command := exec.CommandContext(ctx, "bash", "-eu", "-c", script)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "KUBECONFIG="+shared.cluster.Kubeconfig, "PATH="+programs+":"+os.Getenv("PATH"))
	command.WaitDelay = 10 * time.Second
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}
