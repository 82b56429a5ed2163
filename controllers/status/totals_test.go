// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// shareOf returns the numbers of a profile in a namespace, derived from the given number.
func shareOf(p conditions, namespace string, n int) *share {
	verdict := render.Verdict{Version: render.Version{UID: "1", Generation: 1}, Accepted: n%5 != 0, Reason: v1alpha1.ReasonValid}
	if n%7 == 0 {
		verdict.Held = "held"
	}
	brokers := distribute.Summary{Pods: n % 4, Updated: n % 3 % (n%4 + 1), Partial: n % 2 % (n%3%(n%4+1) + 1)}
	s := &share{inNamespace: p.inNamespace(namespace, fmt.Sprint(n), verdict, brokers), verdict: verdict, brokers: &brokers}
	if n%11 == 0 {
		s.withheld = []downgrade.Change{{Profile: namespace}}
	}
	return s
}

func TestTheSumsAreThoseOfWhatIsKnownLast(t *testing.T) {
	p := conditions{"operators", 9470, true, newAssessments()}
	random := rand.New(rand.NewPCG(1, 2))
	running, last := newTotals(), map[string]*share{}
	for range 5000 {
		namespace := fmt.Sprintf("ns-%d", random.IntN(100))
		if random.IntN(4) == 0 {
			delete(last, namespace)
			running.update(namespace, nil)
			continue
		}
		last[namespace] = shareOf(p, namespace, random.IntN(1000))
		running.update(namespace, map[string]*share{"orders": last[namespace], "other": shareOf(p, namespace, 1)})
	}
	anew := newTotals()
	for namespace, s := range last {
		anew.update(namespace, map[string]*share{"orders": s})
	}
	found, complete := running.of("orders", render.Version{UID: "1", Generation: 1})
	want, _ := anew.of("orders", render.Version{UID: "1", Generation: 1})
	if !complete || !reflect.DeepEqual(found, want) || found.namespaces != len(last) {
		t.Errorf("found %+v (complete: %t), expected %+v", found, complete, want)
	}
	for _, other := range []render.Version{{UID: "1", Generation: 2}, {UID: "2", Generation: 1}} {
		if _, complete := running.of("orders", other); complete {
			t.Errorf("what is known of generation 1 of an object counts as known of %+v", other)
		}
	}
	for namespace := range last {
		running.update(namespace, nil)
	}
	if len(running.profiles)+len(running.namespaces) != 0 {
		t.Errorf("%d profiles and %d namespaces are remembered after all are gone", len(running.profiles), len(running.namespaces))
	}
}

func TestOnlyNewsOfANamespaceIsTold(t *testing.T) {
	p := conditions{"operators", 9470, true, newAssessments()}
	shares := func(a, b int) map[string]*share {
		return map[string]*share{"a": shareOf(p, "shop", a), "b": shareOf(p, "shop", b)}
	}
	all := newTotals()
	for i, step := range []struct {
		shares map[string]*share
		news   []string
	}{
		{shares(1, 1), []string{"a", "b"}},
		{shares(1, 1), nil},
		{shares(1, 2), []string{"b"}},
		{map[string]*share{"b": shareOf(p, "shop", 2)}, []string{"a"}},
		{nil, []string{"b"}},
	} {
		if news := all.update("shop", step.shares); !slices.Equal(slices.Sorted(slices.Values(news)), step.news) {
			t.Errorf("step %d: found %q, expected %q", i, news, step.news)
		}
	}
}

func TestNewsOfANamespaceCostTheSameHoweverManyThereAre(t *testing.T) {
	p := conditions{"operators", 9470, true, newAssessments()}
	cost := func(namespaces int) float64 {
		all := newTotals()
		for i := range namespaces {
			name := fmt.Sprintf("ns-%05d", i)
			all.update(name, map[string]*share{"orders": shareOf(p, name, 2)})
		}
		n := 1
		return testing.AllocsPerRun(100, func() {
			n++
			all.update("ns-00042", map[string]*share{"orders": shareOf(p, "ns-00042", n%2*2+1)})
			all.of("orders", render.Version{UID: "1", Generation: 1})
		})
	}
	if few, many := cost(100), cost(10_000); many > 2*few {
		t.Errorf("%v allocations with 10,000 namespaces, %v with 100", many, few)
	}
}
