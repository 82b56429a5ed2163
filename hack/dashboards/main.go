// SPDX-License-Identifier: Apache-2.0

// Dashboards writes the Grafana dashboards of the chart, with the types that Grafana publishes
// for its dashboards.
//
//	cd hack/dashboards && go run . ../../charts/crypto-broker-operator/dashboards
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// boards has the dashboards by the names of their files.
var boards = map[string]func() *dashboard.DashboardBuilder{
	"audit":      audit,
	"broker":     broker,
	"fleet":      fleet,
	"key-access": keyAccess,
	"operator":   operator,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("found the arguments %q, expected the folder to write to", arguments)
	}
	for _, name := range slices.Sorted(maps.Keys(boards)) {
		content, err := render(name)
		if err != nil {
			return fmt.Errorf("the dashboard %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(arguments[0], name+".json"), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// render returns the JSON of a dashboard.
func render(name string) ([]byte, error) {
	built, err := boards[name]().Build()
	if err != nil {
		return nil, err
	}
	for i, p := range built.Panels {
		id := uint32(i + 1)
		if p.RowPanel != nil {
			p.RowPanel.Id = id
		} else {
			p.Panel.Id = &id
		}
	}
	content, err := json.MarshalIndent(built, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(content, '\n'), nil
}
