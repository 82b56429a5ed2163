// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	rulesFile = "../../charts/crypto-broker-operator/alerts/crypto-broker.yaml"
	docs      = "../../docs"
)

// rule is an alert of the file.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) map[string]rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	read(t, rulesFile, &file)
	all := map[string]rule{}
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			all[r.Alert] = r
		}
	}
	return all
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func text(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestEachAlertHasItsRunbookAndEachRunbookItsAlert(t *testing.T) {
	all := alerts(t)
	contents := text(t, filepath.Join(docs, "runbooks", "README.md"))
	for name, alert := range all {
		if url := alert.Annotations["runbook_url"]; !strings.HasSuffix(url, "/docs/runbooks/"+name+".md") {
			t.Errorf("%s has the runbook %q, expected its page", name, url)
		}
		if line := "| [" + name + "](" + name + ".md) | " + alert.Labels["severity"] + " | " + alert.Annotations["summary"] + " |\n"; !strings.Contains(contents, line) {
			t.Errorf("docs/runbooks/README.md has no line %q", line)
		}
		if line := "\n| " + name + " | "; !strings.Contains(contents, line) {
			t.Errorf("docs/runbooks/README.md does not say how %s is seen firing", name)
		}
	}
	pages, err := filepath.Glob(filepath.Join(docs, "runbooks", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) != len(all)+1 {
		t.Errorf("there are %d pages beside README.md, expected one for each of %d alerts", len(pages)-1, len(all))
	}
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if name == "README" {
			continue
		}
		if _, known := all[name]; !known {
			t.Errorf("%s is about no alert", page)
		}
		for _, part := range []string{"# " + name + "\n", "\n## What is seen\n", "\n## Why\n", "\n## What to do\n"} {
			if !strings.Contains(text(t, page), part) {
				t.Errorf("%s has no %q", page, strings.TrimSpace(part))
			}
		}
	}
}

// serviceLevels is the page with the objectives and their queries.
var serviceLevels = filepath.Join(docs, "service-levels.md")

func TestAlertsRunbooksAndServiceLevelsNameMetricsThatExist(t *testing.T) {
	name := regexp.MustCompile(`\bcrypto_broker_[a-z0-9_]+`)
	list := text(t, filepath.Join(docs, "metrics.md"))
	used := map[string]string{}
	for alert, r := range alerts(t) {
		for _, found := range append(name.FindAllString(r.Expr, -1), name.FindAllString(text(t, filepath.Join(docs, "runbooks", alert+".md")), -1)...) {
			used[found] = alert
		}
	}
	for _, found := range name.FindAllString(text(t, serviceLevels), -1) {
		used[found] = serviceLevels
	}
	if len(used) < 15 {
		t.Errorf("the alerts use the metrics %v, expected more", slices.Sorted(maps.Keys(used)))
	}
	for metric, alert := range used {
		base := metric
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			base = strings.TrimSuffix(base, suffix)
		}
		if !strings.Contains(list, "| `"+base+"` |") && !strings.Contains(list, "| `"+metric+"` |") {
			t.Errorf("%s names the metric %s, which docs/metrics.md does not have", alert, metric)
		}
	}
}

// promtool runs the unit tests of the alerts.
func TestEachAlertIsTestedAsItFiresAndAsItDoesNot(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, name := range files {
		var file struct {
			Tests []struct {
				Name   string `json:"name"`
				Alerts []struct {
					Name     string `json:"alertname"`
					Expected []any  `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			} `json:"tests"`
		}
		read(t, name, &file)
		for _, test := range file.Tests {
			for _, alert := range test.Alerts {
				if len(alert.Expected) > 0 {
					fires[alert.Name] = true
				} else {
					quiet[alert.Name] = true
				}
			}
		}
	}
	for name := range alerts(t) {
		if !fires[name] || !quiet[name] {
			t.Errorf("%s: tested as it fires: %t, and as it does not: %t", name, fires[name], quiet[name])
		}
	}
}
