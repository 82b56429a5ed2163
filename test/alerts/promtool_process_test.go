// SPDX-License-Identifier: Apache-2.0

//go:build process

package alerts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/test/dashboards"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/prometheus"
)

// promtool returns the path of promtool.
func promtool(t *testing.T) string {
	t.Helper()
	repository, err := environment.Repository()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		t.Fatal(err)
	}
	program, err := prometheus.Find(t.Context(), os.Stderr, cache)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(filepath.Dir(program), "promtool")
}

func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	program := promtool(t)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found the tests %v, %v", files, err)
	}
	for sentence, arguments := range map[string][]string{
		"the rules are well-formed": {"check", "rules", rulesFile},
		"the tests of the rules":    append([]string{"test", "rules"}, files...),
	} {
		t.Run(sentence, func(t *testing.T) {
			if out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
				t.Errorf("promtool %v: %v\n%s", arguments, err, out)
			}
		})
	}
}

// recording is a rule that records a query.
type recording struct {
	Record string `json:"record"`
	Expr   string `json:"expr"`
}

func TestEachQueryOfTheDashboardsIsPromQL(t *testing.T) {
	boards, err := dashboards.Read(filepath.Dir(filepath.Dir(rulesFile)))
	if err != nil {
		t.Fatal(err)
	}
	var rules []recording
	for i := range boards {
		substitute := boards[i].Substitute()
		for _, panel := range boards[i].Panels {
			for _, target := range panel.Targets {
				rules = append(rules, recording{fmt.Sprintf("%s:query:%d", strings.ReplaceAll(boards[i].Name, "-", "_"), len(rules)), substitute(target.Expr)})
			}
		}
	}
	expectPromQL(t, rules)
}

func TestEachQueryOfTheServiceLevelsIsPromQL(t *testing.T) {
	var rules []recording
	for _, block := range regexp.MustCompile("(?ms)^```promql\n(.*?)^```").FindAllStringSubmatch(text(t, serviceLevels), -1) {
		rules = append(rules, recording{fmt.Sprintf("service:level:%d", len(rules)), block[1]})
	}
	if len(rules) < 4 {
		t.Errorf("%s has %d queries, expected at least 4", serviceLevels, len(rules))
	}
	expectPromQL(t, rules)
}

// expectPromQL fails the test unless promtool can read each query.
func expectPromQL(t *testing.T, rules []recording) {
	t.Helper()
	content, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), promtool(t), "check", "rules", file).CombinedOutput()
	if want := fmt.Sprintf("%d rules found", len(rules)); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("promtool: %v\n%s\nexpected %s", err, out, want)
	}
}
