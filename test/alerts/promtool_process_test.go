// SPDX-License-Identifier: Apache-2.0

//go:build process

package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/prometheus"
)

func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
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
	promtool := filepath.Join(filepath.Dir(program), "promtool")
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found the tests %v, %v", files, err)
	}
	for sentence, arguments := range map[string][]string{
		"the rules are well-formed": {"check", "rules", rulesFile},
		"the tests of the rules":    append([]string{"test", "rules"}, files...),
	} {
		t.Run(sentence, func(t *testing.T) {
			if out, err := exec.CommandContext(t.Context(), promtool, arguments...).CombinedOutput(); err != nil {
				t.Errorf("promtool %v: %v\n%s", arguments, err, out)
			}
		})
	}
}
