// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/test/dashboards"
)

func readDashboards(t *testing.T) []dashboards.Board {
	t.Helper()
	boards, err := dashboards.Read(chartPath)
	if err != nil {
		t.Fatal(err)
	}
	return boards
}

func TestEveryPanelSaysWhatItShowsAndAsksTheChosenDataSource(t *testing.T) {
	for _, board := range readDashboards(t) {
		ids, taken := map[int]string{}, map[[2]int]string{}
		for _, p := range board.Panels {
			if other, there := ids[p.ID]; there {
				t.Errorf("%s: %q and %q have the id %d", board.Name, other, p.Title, p.ID)
			}
			ids[p.ID] = p.Title
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other, there := taken[[2]int{x, y}]; there || x > 23 {
						t.Fatalf("%s: %q covers %q or leaves the screen", board.Name, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || !strings.HasSuffix(p.Description, ".") {
				t.Errorf("%s: %q has the description %q, expected a sentence", board.Name, p.Title, p.Description)
			}
			if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s: %q asks %q %d queries, expected ${datasource} and one at least", board.Name, p.Title, p.Datasource.UID, len(p.Targets))
			}
			for _, target := range p.Targets {
				if target.Expr == "" || target.Datasource.UID != "${datasource}" {
					t.Errorf("%s: %q asks %q the query %q, expected ${datasource} and a query", board.Name, p.Title, target.Datasource.UID, target.Expr)
				}
			}
		}
	}
}

func TestEachDashboardHasItsVariablesAndUsesNoOthers(t *testing.T) {
	variable := regexp.MustCompile(`\$\{?(\w+)`)
	for _, board := range readDashboards(t) {
		known, used := []string{"__rate_interval", "__range"}, map[string]bool{}
		for _, v := range board.Templating.List {
			known = append(known, v.Name)
			if v.Type == "query" && v.AllValue != ".*" {
				t.Errorf("%s: all values of the variable %s are %q, expected .*, which also selects series without the label", board.Name, v.Name, v.AllValue)
			}
		}
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				for _, match := range variable.FindAllStringSubmatch(target.Expr, -1) {
					used[match[1]] = true
					if !slices.Contains(known, match[1]) {
						t.Errorf("%s: %q uses $%s, which is not there", board.Name, p.Title, match[1])
					}
				}
				if !strings.Contains(target.Expr, `cluster=~"$cluster"`) {
					t.Errorf("%s: %q asks %q, expected only series of the chosen clusters", board.Name, p.Title, target.Expr)
				}
			}
		}
		for _, name := range known[2:] {
			if name != "datasource" && !used[name] {
				t.Errorf("%s: no query uses the variable $%s", board.Name, name)
			}
		}
		if !slices.Contains(known, "cluster") {
			t.Errorf("%s has no variable for the cluster", board.Name)
		}
	}
}

func TestDashboardsAskForMetricsThatExist(t *testing.T) {
	list, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	suffix := regexp.MustCompile(`_(bucket|count|sum)$`)
	for _, board := range readDashboards(t) {
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				found := dashboards.Metrics(target.Expr)
				if len(found) == 0 {
					t.Errorf("%s: %q asks for no metric: %s", board.Name, p.Title, target.Expr)
				}
				for _, metric := range found {
					// The others are metrics of the Go runtime, of processes and of controller-runtime.
					if strings.HasPrefix(metric, "crypto_broker_") && !strings.Contains(string(list), "| `"+suffix.ReplaceAllString(metric, "")+"` |") {
						t.Errorf("%s: %q asks for %s, which docs/metrics.md does not have", board.Name, p.Title, metric)
					}
				}
			}
		}
	}
}

func TestEachDashboardHasAConfigMap(t *testing.T) {
	objects := renderChart(t, "--set", "dashboard.enabled=true,dashboard.namespace=monitoring")
	for _, board := range readDashboards(t) {
		content, err := os.ReadFile(filepath.Join(chartPath, "dashboards", board.Name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		configMap := find[corev1.ConfigMap](t, objects, "ConfigMap", release+"-dashboard-"+board.Name)
		if configMap.Labels["grafana_dashboard"] != "1" || configMap.Namespace != "monitoring" {
			t.Errorf("found the labels %v in the namespace %s, expected grafana_dashboard: 1 in monitoring", configMap.Labels, configMap.Namespace)
		}
		if strings.TrimSpace(configMap.Data["crypto-broker-"+board.Name+".json"]) != strings.TrimSpace(string(content)) {
			t.Errorf("the ConfigMap of %s holds another dashboard than the file", board.Name)
		}
		if len(content) > 200<<10 {
			t.Errorf("%s has %d bytes, expected less than the 256 KiB that kubectl apply takes", board.Name, len(content))
		}
	}
	if found := kinds(renderChart(t), "ConfigMap"); slices.ContainsFunc(found, func(name string) bool { return strings.Contains(name, "dashboard") }) {
		t.Errorf("found the ConfigMaps %q without dashboard.enabled, expected no dashboard", found)
	}
}
