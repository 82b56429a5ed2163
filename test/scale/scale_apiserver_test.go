// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain makes the test binary act as the program when the program runs itself again in its own network namespace.
func TestMain(m *testing.M) {
	if os.Getenv(programsVariable) == "" {
		os.Exit(m.Run())
	}
	main()
}

func TestTheOperatorOfTheChartBringsEachChangeToEachPodAndWritesNothingAfterwards(t *testing.T) {
	report := filepath.Join(t.TempDir(), "operator.md")
	o, err := readOptions([]string{"--pods", "200", "--namespaces", "10", "--changes", "5", "--during", "1s", "--idle", "5s",
		"--more-namespaces", "20", "--profiles", "20", "--report", report})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| one profile changes | 20 | 1 |",
		"| one ClusterCryptoProfile changes | 200 | 12 |", // including default and kube-public
		// No sets, no record, no annotations, no statuses and no events.
		"| nothing changes for 5s | 0 | 0 | 0 | 0 | 0 | 0 |",
		"0 lines with errors in its log",
		"writes the annotation of the 20 pods of one namespace",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}
