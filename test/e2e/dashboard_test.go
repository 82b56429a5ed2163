// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/dashboards"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/prometheus"
)

// scrapeInterval is between two scrapes in the tests.
const scrapeInterval = time.Second

// TestEveryPanelHasAnAnswerUnderLoad asks each query of each dashboard. With DASHBOARD_PICTURES=FOLDER it draws the
// dashboards, from more minutes of load.
func TestEveryPanelHasAnAnswerUnderLoad(t *testing.T) {
	program, err := prometheus.Find(t.Context(), os.Stderr, shared.Cache)
	must(t, err)
	restoreChart(t)
	_, err = shared.helm.Install(t.Context(), environment.Chart(shared.Repository), &shared.Images, "audit.enabled=true")
	must(t, err)
	server, err := prometheus.Start(t.Context(), program, t.TempDir(), shared.cluster.Kubeconfig, prometheus.Options{Interval: scrapeInterval})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	began := time.Now()
	profile := makeEverythingHappen(t)
	haveAChangeTimed(t, server, profile)

	// A rate needs two scrapes. The test waits until all brokers have a rate of calls and of failed calls.
	for _, expression := range []string{
		`sum(rate(crypto_broker_requests_total{code="OK"}[30s])) > 0`,
		`sum(rate(crypto_broker_requests_total{code!="OK"}[30s])) > 0`,
	} {
		eventually(t, patience, expression, func() error { _, err := dashboards.Ask(t.Context(), server, expression); return err })
	}

	boards, err := dashboards.Read(environment.Chart(shared.Repository))
	must(t, err)
	for i := range boards {
		board := &boards[i]
		if board.Name == keyAccessDashboard {
			continue // the tests of the key access service test the queries of this dashboard
		}
		eventually(t, patience, "each query of the dashboard "+board.Name+" has an answer", func() error { return board.ExpectAnswers(t.Context(), server) })
	}
	if folder := os.Getenv("DASHBOARD_PICTURES"); folder != "" {
		changeForAWhile(t, profile, began)
		drawDashboards(t, server, boards, folder, began)
	}
	_, err = shared.helm.Install(t.Context(), environment.Chart(shared.Repository), &shared.Images)
	must(t, err)
}

// keyAccessDashboard is the dashboard of a service that does not run in the cluster of these tests.
const keyAccessDashboard = "key-access"

// picturedTime is how much time the pictures of dashboards show.
const picturedTime = 4 * time.Minute

// changeForAWhile changes a profile again and again until there is enough to draw.
func changeForAWhile(t *testing.T, profile *v1alpha1.CryptoProfile, began time.Time) {
	t.Helper()
	for n := 0; time.Since(began) < picturedTime; n++ {
		changeHash(t, profile, []string{"sha3-256", "sha-256"}[n%2])
		awaitPropagated(t, profile, picturedPods)
		<-time.After(20 * time.Second)
	}
}

func drawDashboards(t *testing.T, server *prometheus.Server, boards []dashboards.Board, folder string, began time.Time) {
	t.Helper()
	for i := range boards {
		if boards[i].Name == keyAccessDashboard {
			continue
		}
		picture, err := dashboards.Draw(t.Context(), server, &boards[i], began, time.Now())
		must(t, err)
		must(t, os.WriteFile(filepath.Join(folder, "dashboard-"+boards[i].Name+".svg"), []byte(picture), 0o644))
	}
}

// picturedPods is how many pods have the profile that makeEverythingHappen returns.
const picturedPods = 5

// makeEverythingHappen causes every series of the dashboards: injected pods, refused pods and pods without a broker, calls that
// succeed and fail, and profiles that change, are refused, deprecated or withheld.
func makeEverythingHappen(t *testing.T) *v1alpha1.CryptoProfile {
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha3-512")
	changeSpec(t, profile, func(spec *v1alpha1.ProfileSpec) { spec.Audit = &v1alpha1.Audit{Level: "all"} })
	for name, spec := range map[string]v1alpha1.ProfileSpec{"archive": hashing("Archive", "sha-384"), "legacy": hashing("Legacy", "sha-512/256")} {
		if name == "legacy" {
			spec.Deprecation = &v1alpha1.Deprecation{ReplacedBy: "Archive", DeprecatedSince: "2026-01-31"}
		}
		must(t, shared.client.Create(t.Context(), &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: spec}))
	}
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "orders", 2, load)))
	must(t, shared.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys", Namespace: namespace},
		Data: map[string][]byte{"orders.bin": make([]byte, 32)}}))
	archive := appDeployment(namespace, "archive", 1, map[string]string{"PROFILE": "Archive", "INTERVAL": "30ms"})
	archive.Spec.Template.Annotations["cryptobroker.io/keys"] = "keys"
	must(t, shared.client.Create(t.Context(), archive))
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "billing", 1, map[string]string{"PROFILE": "Legacy", "INTERVAL": "100ms"})))
	// An application that uses the name of a missing profile.
	must(t, shared.client.Create(t.Context(), appDeployment(namespace, "misled", 1, map[string]string{"PROFILE": "Absent", "INTERVAL": "200ms"})))
	for _, name := range []string{"archive", "billing", "misled"} {
		readyPods(t, namespace, "app="+name, 1)
	}
	good := &readyPods(t, namespace, "app=orders", 2)[0]
	awaitCalls(t, good, statsPort, nil, 100)
	expectRefused(t, shared.client.Create(t.Context(), appPod(namespace, inject("yes"), nil)), `"yes"`)
	awaitAlgorithm(t, good, "sha-256", changeHash(t, profile, "sha-256"), changeTimeout)
	missABroker(t)
	withholdAProfile(t)
	return profile
}

// haveAChangeTimed changes a profile until the operator has measured the time of a change. A leader measures only changes that it
// has seen completely, and the previous leader may have seen the first change.
func haveAChangeTimed(t *testing.T, server *prometheus.Server, profile *v1alpha1.CryptoProfile) {
	t.Helper()
	algorithms := []string{"sha3-256", "sha-256"}
	for n := range 10 {
		for range 5 {
			if _, err := dashboards.Ask(t.Context(), server, `sum(crypto_broker_operator_propagation_duration_seconds_count) > 0`); err == nil {
				return
			}
			<-time.After(scrapeInterval)
		}
		changeHash(t, profile, algorithms[n%2])
		awaitPropagated(t, profile, picturedPods)
	}
	t.Error("the operator has timed none of ten changes")
}

// missABroker makes a pod in a namespace, and only then makes the namespace ask for brokers. It returns the namespace.
func missABroker(t *testing.T) (namespace string) {
	t.Helper()
	namespace = newNamespace(t, nil)
	must(t, shared.client.Create(t.Context(), appPod(namespace, nil, nil)))
	must(t, shared.client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, contract.InjectionLabel, contract.InjectionEnabled))))
	return namespace
}

// withholdAProfile takes a profile of the cluster away from a namespace, so that a weaker profile of the namespace would be served.
// It returns the namespace.
func withholdAProfile(t *testing.T) (namespace string) {
	t.Helper()
	tier := map[string]string{"e2e-dashboard": fmt.Sprint(time.Now().UnixNano())}
	namespace = newNamespace(t, tier)
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
	eventually(t, patience, "the weaker profile is withheld", func() error {
		if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(weak), weak); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(weak.Status.Conditions, v1alpha1.ConditionDowngradeWithheld) {
			return fmt.Errorf("found %+v", weak.Status.Conditions)
		}
		return nil
	})
	return namespace
}
