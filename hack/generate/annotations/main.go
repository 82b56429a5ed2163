// SPDX-License-Identifier: Apache-2.0

// Program annotations writes what follows from the table of pod annotations in webhook/injection: a template of the chart, and the
// table in docs/pods.md. It runs in the root of the repository.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

const (
	template = "charts/crypto-broker-operator/templates/injection/_annotations.tpl"
	page     = "docs/pods.md"
)

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "hack/generate/annotations:", err)
		os.Exit(1)
	}
}

func generate() error {
	if err := os.WriteFile(template, []byte(injection.ChartTemplate()), 0o644); err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	table := injection.DocumentationTable()
	head, _, _ := strings.Cut(table, "\n")
	before, rest, found := strings.Cut(string(text), head+"\n")
	if !found {
		return fmt.Errorf("%s has no line %q, expected the head of the table of annotations", page, head)
	}
	_, after, _ := strings.Cut(rest, "\n\n")
	return os.WriteFile(page, []byte(before+table+"\n"+after), 0o644)
}
