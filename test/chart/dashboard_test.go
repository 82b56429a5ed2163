// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

type dashboard struct {
	SchemaVersion int `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name string `json:"name"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	GridPos struct{ H, W, X, Y int } `json:"gridPos"`
	Targets []struct {
		Expr       string `json:"expr"`
		Datasource struct {
			UID string `json:"uid"`
		} `json:"datasource"`
	} `json:"targets"`
}

var dashboardPath = filepath.Join(chartPath, "dashboards", "crypto-broker.json")

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	content, err := os.ReadFile(dashboardPath)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryPanelSaysWhatItShowsAndAsksTheChosenDataSource(t *testing.T) {
	d := readDashboard(t)
	if d.SchemaVersion < 39 {
		t.Errorf("found schemaVersion %d, expected 39 or newer", d.SchemaVersion)
	}
	ids, taken := map[int]string{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if other, there := ids[p.ID]; there {
			t.Errorf("%q and %q have the id %d", other, p.Title, p.ID)
		}
		ids[p.ID] = p.Title
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, there := taken[[2]int{x, y}]; there || x > 23 {
					t.Fatalf("%q covers %q or leaves the screen", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || !strings.HasSuffix(p.Description, ".") {
			t.Errorf("%q has the description %q, expected a sentence", p.Title, p.Description)
		}
		if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("%q asks %q %d queries, expected ${datasource} and one at least", p.Title, p.Datasource.UID, len(p.Targets))
		}
		for _, target := range p.Targets {
			if target.Expr == "" || target.Datasource.UID != "${datasource}" {
				t.Errorf("%q asks %q the query %q, expected ${datasource} and a query", p.Title, target.Datasource.UID, target.Expr)
			}
		}
	}
}

func TestQueriesUseOnlyVariablesThatAreThere(t *testing.T) {
	d := readDashboard(t)
	known := map[string]bool{"__rate_interval": true}
	for _, variable := range d.Templating.List {
		known[variable.Name] = true
	}
	variable := regexp.MustCompile(`\$\{?(\w+)`)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			for _, match := range variable.FindAllStringSubmatch(target.Expr, -1) {
				if !known[match[1]] {
					t.Errorf("%q uses $%s, which is not there", p.Title, match[1])
				}
			}
		}
	}
}

func TestTheConfigMapHoldsTheDashboard(t *testing.T) {
	content, err := os.ReadFile(dashboardPath)
	if err != nil {
		t.Fatal(err)
	}
	configMap := find[corev1.ConfigMap](t, renderChart(t, "--set", "dashboard.enabled=true"), "ConfigMap", release+"-dashboard")
	if configMap.Labels["grafana_dashboard"] != "1" {
		t.Errorf("found the labels %v, expected grafana_dashboard: 1", configMap.Labels)
	}
	if strings.TrimSpace(configMap.Data["crypto-broker.json"]) != strings.TrimSpace(string(content)) {
		t.Error("the ConfigMap holds another dashboard than the file")
	}
}
