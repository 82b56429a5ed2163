// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func TestGrafanaKnowsEveryFieldOfEachDashboard(t *testing.T) {
	plugins.RegisterDefaultPlugins() // the types of panels and queries
	for name := range boards {
		t.Run(name, func(t *testing.T) {
			content, err := render(name)
			if err != nil {
				t.Fatal(err)
			}
			var read dashboard.Dashboard
			// The package returns an error with an empty text for parts that are correct.
			if err := read.UnmarshalJSONStrict(content); err != nil && err.Error() != "" {
				t.Fatal(err)
			}
			if err := read.Validate(); err != nil {
				t.Error(err)
			}
			if newest := dashboard.NewDashboard().SchemaVersion; read.SchemaVersion != newest {
				t.Errorf("found schemaVersion %d, expected %d", read.SchemaVersion, newest)
			}
		})
	}
}

func TestADashboardWithAFieldThatGrafanaDoesNotKnowIsFound(t *testing.T) {
	var read dashboard.Dashboard
	err := read.UnmarshalJSONStrict([]byte(`{"schemaVersion":42,"colour":"green"}`))
	if err == nil || !strings.Contains(err.Error(), "unexpected field 'colour'") {
		t.Errorf("found the error %v, expected one that names the field colour", err)
	}
}
