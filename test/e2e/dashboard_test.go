// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/prometheus"
)

// panel is a panel of a Grafana dashboard, or a row of them.
type panel struct {
	Title   string
	Targets []struct{ Expr string }
	Panels  []panel
}

// dashboard is what the test reads of a Grafana dashboard.
type dashboard struct {
	Title      string
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
}

// scrapeInterval is between two scrapes in the tests.
const scrapeInterval = time.Second

func TestEveryQueryOfTheDashboardHasAnAnswerUnderLoad(t *testing.T) {
	program, err := prometheus.Find(t.Context(), os.Stderr, shared.Cache)
	must(t, err)
	server, err := prometheus.Start(t.Context(), program, t.TempDir(), shared.cluster.Kubeconfig, scrapeInterval)
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	profile := makeEverythingHappen(t)
	haveAChangeTimed(t, server, profile)

	// A rate needs two scrapes. These wait until the calls and the failed ones have one, of all brokers.
	for _, expression := range []string{
		`sum(rate(crypto_broker_requests_total{code="OK"}[30s])) > 0`,
		`sum(rate(crypto_broker_requests_total{code!="OK"}[30s])) > 0`,
	} {
		eventually(t, 30*time.Second, expression, func() error { _, err := ask(t, server, expression); return err })
	}

	files, err := filepath.Glob(filepath.Join(environment.Chart(shared.Repository), "dashboards", "*.json"))
	must(t, err)
	queries := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		must(t, err)
		var board dashboard
		if err := json.Unmarshal(content, &board); err != nil {
			t.Fatalf("%s is no dashboard: %v", file, err)
		}
		substitute := expectVariables(t, server, &board)
		queries += expectAnswers(t, server, board.Title, board.Panels, substitute)
	}
	if queries == 0 {
		t.Errorf("found no query in the dashboards %q", files)
	}
}

// makeEverythingHappen has every series of the dashboard come into being: pods injected, refused and without a broker,
// calls that succeed and fail, profiles that change, that are refused and that are withheld.
func makeEverythingHappen(t *testing.T) *v1alpha1.CryptoProfile {
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha3-512")
	good := createPod(t, appPod(namespace, inject("true"), load))
	createPod(t, appPod(namespace, inject("true"), map[string]string{"PROFILE": "Absent", "INTERVAL": "50ms"}))
	awaitCalls(t, good, statsPort, nil, 100)
	expectRefused(t, shared.client.Create(t.Context(), appPod(namespace, inject("yes"), nil)), `"yes"`)
	awaitAlgorithm(t, good, "sha-256", changeHash(t, profile, "sha-256"), resync)
	awaitPropagated(t, profile, 2)
	missABroker(t)
	withholdAProfile(t)
	return profile
}

// haveAChangeTimed changes a profile until the operator has timed a change. Only a leader that saw the whole of a change
// times it, and the leader of the pods before an upgrade may have seen the first one.
func haveAChangeTimed(t *testing.T, server *prometheus.Server, profile *v1alpha1.CryptoProfile) {
	t.Helper()
	algorithms := []string{"sha3-256", "sha-256"}
	for n := range 10 {
		for range 5 {
			if _, err := ask(t, server, `sum(crypto_broker_operator_propagation_duration_seconds_count) > 0`); err == nil {
				return
			}
			<-time.After(scrapeInterval)
		}
		changeHash(t, profile, algorithms[n%2])
		awaitPropagated(t, profile, 2)
	}
	t.Error("the operator has timed none of ten changes")
}

// missABroker makes a pod in a namespace that asks for brokers only afterwards.
func missABroker(t *testing.T) {
	t.Helper()
	namespace := newNamespace(t, nil)
	must(t, shared.client.Create(t.Context(), appPod(namespace, nil, nil)))
	must(t, shared.client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, contract.InjectionLabel, contract.InjectionEnabled))))
}

// withholdAProfile takes a profile of the cluster from a namespace, so that a weaker one of the namespace would count.
func withholdAProfile(t *testing.T) {
	t.Helper()
	tier := map[string]string{"e2e-dashboard": fmt.Sprint(time.Now().UnixNano())}
	namespace := newNamespace(t, tier)
	strong := &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-dashboard-"}}
	strong.Spec.ProfileSpec = hashing("Default", "sha3-512")
	strong.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: tier}
	must(t, shared.client.Create(t.Context(), strong))
	t.Cleanup(func() {
		if err := shared.client.Delete(timeoutContext(t, time.Minute), strong); err != nil {
			t.Errorf("removing the ClusterCryptoProfile %s: %v", strong.Name, err)
		}
	})
	profilesConfigMap(t, namespace)
	weak := createProfile(t, namespace, "sha-256")
	must(t, shared.client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"e2e-dashboard":null}}}`))))
	eventually(t, 30*time.Second, "the weaker profile is withheld", func() error {
		if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(weak), weak); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(weak.Status.Conditions, v1alpha1.ConditionDowngradeWithheld) {
			return fmt.Errorf("found %+v", weak.Status.Conditions)
		}
		return nil
	})
}

// expectVariables asks for the values of the dashboard's variables, as Grafana does, and returns a function that puts
// them into an expression.
func expectVariables(t *testing.T, server *prometheus.Server, board *dashboard) func(string) string {
	t.Helper()
	replacements := []string{
		"${__rate_interval}", "30s", "$__rate_interval", "30s",
		"${__range}", "1m", "$__range", "1m",
		"${__interval}", "5s", "$__interval", "5s",
	}
	labelValues := regexp.MustCompile(`^label_values\((?:(.*),)?\s*([a-zA-Z_]+)\)$`)
	for _, variable := range board.Templating.List {
		if variable.Type != "query" {
			continue
		}
		query := variableQuery(variable.Query)
		parts := labelValues.FindStringSubmatch(query)
		if parts == nil {
			t.Errorf("found the query %q of the variable %s, expected label_values(…)", query, variable.Name)
			continue
		}
		selector := strings.NewReplacer(replacements...).Replace(parts[1])
		eventually(t, 30*time.Second, "the variable "+variable.Name+" has a value", func() error {
			values, err := server.LabelValues(t.Context(), parts[2], selector)
			if err == nil && len(values) == 0 {
				err = fmt.Errorf("%s has none", query)
			}
			return err
		})
		// Chosen is "All", as at first.
		for _, form := range []string{"${%s}", "${%s:regex}", "${%s:pipe}", "$%s"} {
			replacements = append(replacements, fmt.Sprintf(form, variable.Name), ".+")
		}
	}
	return strings.NewReplacer(replacements...).Replace
}

// variableQuery reads the query of a variable, which is a text or an object with one.
func variableQuery(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var object struct{ Query string }
	if json.Unmarshal(raw, &object) == nil {
		return object.Query
	}
	return string(raw)
}

// metricNames finds the metrics in an expression.
var metricNames = regexp.MustCompile(`\b(crypto_broker|controller_runtime|process|go)_[a-z_]+\b`)

// expectAnswers asks every query of the panels until it has an answer, and returns how many there are.
func expectAnswers(t *testing.T, server *prometheus.Server, board string, panels []panel, substitute func(string) string) int {
	t.Helper()
	count := 0
	for _, each := range panels {
		count += expectAnswers(t, server, board, each.Panels, substitute)
		for _, target := range each.Targets {
			count++
			t.Run(board+"/"+each.Title, func(t *testing.T) {
				expression := substitute(target.Expr)
				for _, metric := range metricNames.FindAllString(expression, -1) {
					// A panel that falls back to zero has an answer even if no such metric exists.
					eventually(t, 30*time.Second, "there is a series "+metric, func() error {
						_, err := ask(t, server, "count("+metric+")")
						return err
					})
				}
				var answer string
				eventually(t, 30*time.Second, fmt.Sprintf("%s has an answer without NaN", expression), func() (err error) {
					answer, err = ask(t, server, expression)
					return err
				})
				t.Logf("%s = %s", expression, answer)
			})
		}
	}
	return count
}

// ask evaluates an expression; an empty answer or one with NaN is an error.
func ask(t *testing.T, server *prometheus.Server, expression string) (string, error) {
	samples, err := server.Query(t.Context(), expression)
	if err != nil {
		return "", err
	}
	if len(samples) == 0 {
		return "", fmt.Errorf("the answer is empty")
	}
	for _, each := range samples {
		if math.IsNaN(each.Value) {
			return "", fmt.Errorf("the answer is NaN for %v", each.Labels)
		}
	}
	return fmt.Sprintf("%g (the first of %d)", samples[0].Value, len(samples)), nil
}
