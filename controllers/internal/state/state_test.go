// SPDX-License-Identifier: Apache-2.0

package state

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

func namespace(uid types.UID) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: uid}}
}

// everything returns an entry in which every field except the UID has a value.
func everything(known *Namespace) {
	*known = Namespace{
		UID: known.UID, Decision: &Decision{Digest: "sha256:00"}, Target: distribute.Target{Digest: "sha256:00"},
		Contents: Contents{Digest: "sha256:00", Names: []string{"orders"}}, FailingSince: time.Now(), PendingVersion: "7",
		Served: &downgrade.State{}, Revision: 5, Raised: time.Now(),
		Withheld: 2, BaselineMissing: true, HeldReason: "held", BaselineReported: true, ProblemReported: "Behind",
	}
}

// metricsOf returns the values of all metrics of a namespace, by name of the metric.
func metricsOf(t *testing.T, store *Store) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(store); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if label := metric.GetLabel()[0].GetValue(); label != "shop" {
				t.Errorf("found a metric of the namespace %q", label)
			}
			values[family.GetName()] = metric.GetGauge().GetValue()
		}
	}
	return values
}

func TestForgettingANamespaceLeavesNothingOfItAndNoMetric(t *testing.T) {
	store := NewStore()
	store.Update(namespace("1"), everything)
	want := map[string]float64{
		"crypto_broker_operator_profiles_withheld": 2,
		"crypto_broker_operator_baselines_missing": 1,
		"crypto_broker_operator_sets_held":         1,
	}
	if found := metricsOf(t, store); !maps.Equal(found, want) {
		t.Errorf("found the metrics %v, expected %v", found, want)
	}
	if known, was := store.Forget("shop"); !was || known.UID != "1" {
		t.Errorf("forgot %+v, %t, expected the namespace with the UID 1", known, was)
	}
	if known, is := store.Get("shop"); is {
		t.Errorf("%+v is still there", known)
	}
	if found := metricsOf(t, store); len(found) != 0 {
		t.Errorf("the metrics %v are left", found)
	}
}

func TestANamespaceOfWhichNothingIsWrongHasNoMetric(t *testing.T) {
	store := NewStore()
	store.Update(namespace("1"), func(known *Namespace) { known.Revision = 5 })
	if found := metricsOf(t, store); len(found) != 0 {
		t.Errorf("found the metrics %v", found)
	}
}

func TestAnotherNamespaceOfTheSameNameInheritsNothing(t *testing.T) {
	store := NewStore()
	store.Update(namespace("1"), everything)
	if known := store.Of(namespace("2")); known.Served != nil || known.Revision != 0 {
		t.Errorf("found %+v before anything is known", known)
	}
	store.Update(namespace("2"), func(known *Namespace) { known.Revision = 1 })
	if known := store.Of(namespace("2")); known.Revision != 1 || known.Served != nil || known.HeldReason != "" || known.Decision != nil {
		t.Errorf("found %+v", known)
	}
}

func TestALateReportDoesNotBringANamespaceBack(t *testing.T) {
	store := NewStore()
	store.Update(namespace("1"), everything)
	store.Forget("shop")
	store.UpdateKnown("shop", func(known *Namespace) { known.ProblemReported = "Behind" })
	if _, is := store.Get("shop"); is {
		t.Error("an entry came back")
	}
}

func TestACacheThatIsOlderThanTheLastWriteIsRecognised(t *testing.T) {
	for sentence, test := range map[string]struct {
		found, written string
		behind         bool
	}{
		"without a write there is nothing to wait for":              {"1", "", false},
		"without a write there may be no object":                    {"", "", false},
		"an object that was written and is not there":               {"", "10", true},
		"version 9 is older than 10":                                {"9", "10", true},
		"version 10 is the write itself":                            {"10", "10", false},
		"version 100 is newer than 10":                              {"100", "10", false},
		"versions that can't be compared are taken as they are":     {"b", "10", false},
		"a write whose version can't be compared is not waited for": {"9", "a", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if found := IsBehind(test.found, test.written); found != test.behind {
				t.Errorf("found %t for %q after %q", found, test.found, test.written)
			}
		})
	}
}
