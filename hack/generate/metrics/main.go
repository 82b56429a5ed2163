// SPDX-License-Identifier: Apache-2.0

// Program metrics writes the tables in docs/metrics.md from the definitions of metrics in
// the Go files of the brokers, the operator and the key gateway. It runs in the root of the
// repository. It reads the sources, because a process does not show metrics that are only made on request.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

const page = "docs/metrics.md"

// programs are the sections of the page, by the beginning of the names of their metrics. The first one that matches is used.
var programs = []struct{ title, prefix string }{
	{"The operator", "crypto_broker_operator_"},
	{"The key gateway", "crypto_broker_gateway_"},
	{"Brokers", "crypto_broker_"},
}

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "hack/generate/metrics:", err)
		os.Exit(1)
	}
}

func generate() error {
	metrics, err := find("broker", "cmd", "controllers", "webhook")
	if err != nil {
		return err
	}
	sections := map[string][]metric{}
	for _, m := range metrics {
		i := slices.IndexFunc(programs, func(p struct{ title, prefix string }) bool { return strings.HasPrefix(m.name, p.prefix) })
		sections[programs[i].title] = append(sections[programs[i].title], m)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	out := string(text)
	for _, p := range programs {
		if out, err = replace(out, p.title, table(sections[p.title])); err != nil {
			return err
		}
	}
	return os.WriteFile(page, []byte(out), 0o644)
}

// replace replaces the table of a section.
func replace(text, title, table string) (string, error) {
	const head = "\n| metric |"
	before, rest, found := strings.Cut(text, "\n## "+title+"\n")
	if !found {
		return "", fmt.Errorf("%s has no section %q", page, title)
	}
	introduction, rest, found := strings.Cut(rest, head)
	if !found {
		return "", fmt.Errorf("the section %q of %s has no table that begins with %q", title, page, strings.TrimSpace(head))
	}
	_, after, found := strings.Cut(rest, "\n\n")
	if found {
		after = "\n" + after
	}
	return before + "\n## " + title + "\n" + introduction + "\n" + table + after, nil
}

func table(metrics []metric) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | what it says |\n|---|---|---|---|\n")
	for _, m := range metrics {
		labels := ""
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, m.help)
	}
	return b.String()
}
