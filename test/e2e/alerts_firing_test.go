// SPDX-License-Identifier: Apache-2.0

//go:build e2e && alerts

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/prometheus"
)

// alerting is a Prometheus with the alerts of the chart, and an Alertmanager that gets them.
type alerting struct {
	prometheus   *prometheus.Server
	alertmanager *prometheus.Alertmanager
	// summaries are the summaries of the alerts of the chart, by their names.
	summaries map[string]string
	// fired are the alerts that Alertmanager had.
	fired map[string]bool
}

// shortened is how long a condition has to hold in these tests before its alert fires. The chart has minutes to days.
const shortened = "2s"

// shortenRules writes the chart's rules with the field "for" of each alert shortened, and with nothing else changed. It
// returns the file and the summaries of the alerts.
func shortenRules(t *testing.T) (file string, summaries map[string]string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(environment.Chart(shared.Repository), "alerts", "crypto-broker.yaml"))
	must(t, err)
	var rules struct {
		Groups []struct {
			Name  string           `json:"name"`
			Rules []map[string]any `json:"rules"`
		} `json:"groups"`
	}
	must(t, yaml.Unmarshal(content, &rules))
	summaries = map[string]string{}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if _, there := rule["for"]; there {
				rule["for"] = shortened
			}
			annotations := rule["annotations"].(map[string]any)
			summaries[rule["alert"].(string)] = annotations["summary"].(string)
		}
	}
	content, err = yaml.Marshal(rules)
	must(t, err)
	file = filepath.Join(t.TempDir(), "alerts.yaml")
	must(t, os.WriteFile(file, content, 0o644))
	return file, summaries
}

// startAlerting starts Alertmanager and Prometheus, which also scrapes the given addresses, and waits until nothing fires.
func startAlerting(t *testing.T, others ...string) *alerting {
	t.Helper()
	a := &alerting{fired: map[string]bool{}}
	var err error
	a.alertmanager, err = prometheus.StartAlertmanager(t.Context(), os.Stderr, shared.Cache, t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, a.alertmanager.Stop()) })
	var rules string
	rules, a.summaries = shortenRules(t)
	program, err := prometheus.Find(t.Context(), os.Stderr, shared.Cache)
	must(t, err)
	a.prometheus, err = prometheus.Start(t.Context(), program, t.TempDir(), shared.cluster.Kubeconfig,
		prometheus.Options{Interval: scrapeInterval, Rules: rules, Alertmanager: a.alertmanager, Others: others})
	must(t, err)
	t.Cleanup(func() { must(t, a.prometheus.Stop()) })
	eventually(t, time.Minute, "Prometheus has the metrics of the operator", func() error {
		found, err := a.prometheus.Query(t.Context(), "crypto_broker_operator_certificate_expiry_timestamp_seconds")
		if err == nil && len(found) == 0 {
			err = errors.New("it has none")
		}
		return err
	})
	eventually(t, time.Minute, "no alert fires before anything has happened", func() error {
		alerts, err := a.alertmanager.Alerts(t.Context())
		if err == nil && len(alerts) > 0 {
			err = fmt.Errorf("found %q", names(alerts))
		}
		return err
	})
	return a
}

// expect waits until Alertmanager has an alert with these labels, as pairs of name and value, and checks what it says. It is a
// subtest, so that the other subtests go on if it fails.
func (a *alerting) expect(t *testing.T, name string, labels ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		began := time.Now()
		eventually(t, 2*time.Minute, fmt.Sprintf("Alertmanager has %s with %q", name, labels), func() error {
			alerts, err := a.alertmanager.Alerts(t.Context())
			if err != nil {
				return err
			}
			found := slices.IndexFunc(alerts, func(alert prometheus.Alert) bool {
				return alert.Labels["alertname"] == name && hasLabels(alert.Labels, labels)
			})
			if found < 0 {
				return fmt.Errorf("it has %q", names(alerts))
			}
			a.fired[name] = true
			annotations := alerts[found].Annotations
			if summary := annotations["summary"]; summary != a.summaries[name] {
				t.Errorf("found the summary %q, expected %q", summary, a.summaries[name])
			}
			description := annotations["description"]
			if description == "" || strings.Contains(description, "<no value>") || strings.Contains(description, "error expanding") {
				t.Errorf("found the description %q, expected a sentence without gaps", description)
			}
			t.Logf("seen in Alertmanager after %.0f s: %s", time.Since(began).Seconds(), description)
			return nil
		})
	})
}

// expectQuiet waits until an alert does not fire. If it fires afterwards, the next step of the test is the reason.
func (a *alerting) expectQuiet(t *testing.T, name string) {
	t.Helper()
	eventually(t, time.Minute, name+" does not fire yet", func() error {
		alerts, err := a.alertmanager.Alerts(t.Context())
		if err == nil && slices.Contains(names(alerts), name) {
			err = errors.New("it fires")
		}
		return err
	})
}

func hasLabels(labels map[string]string, pairs []string) bool {
	for i := 0; i < len(pairs); i += 2 {
		if labels[pairs[i]] != pairs[i+1] {
			return false
		}
	}
	return true
}

// names returns the names of alerts, each once and sorted.
func names(alerts []prometheus.Alert) []string {
	var found []string
	for _, alert := range alerts {
		found = append(found, alert.Labels["alertname"])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestEachAlertFiresWhenItsReasonHappens causes the reason of each alert on a real cluster, and looks for the alert in
// Alertmanager. The expressions are the chart's; only the time for which they have to hold is shorter.
func TestEachAlertFiresWhenItsReasonHappens(t *testing.T) {
	restoreChart(t)
	service := startKeyAccessService(t)
	// The keys live longer than the alert expects, as its runbook says.
	values := []string{"audit.enabled=true", "signing.keyLifetime=4800h"}
	install(t, values...)
	a := startAlerting(t, service.status)

	t.Run("key access", func(t *testing.T) { provokeKeyAccess(t, a, service) })
	t.Run("profiles", func(t *testing.T) { provokeProfiles(t, a) })
	t.Run("brokers", func(t *testing.T) { provokeBrokers(t, a) })
	t.Run("audit records", func(t *testing.T) { loseAuditRecords(t, a) })
	t.Run("required audit records", func(t *testing.T) { failForLackOfRecords(t, a) })
	t.Run("pods", func(t *testing.T) { provokePods(t, a, values) })
	t.Run("operator", func(t *testing.T) { provokeOperator(t, a) })

	for name := range a.summaries {
		if !a.fired[name] {
			t.Errorf("%s has not fired", name)
		}
	}
	install(t)
}

// install installs the chart with values.
func install(t *testing.T, values ...string) {
	t.Helper()
	_, err := shared.helm.Install(t.Context(), environment.Chart(shared.Repository), &shared.Images, values...)
	must(t, err)
}
