// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// requests are what an operator asked the API server, as "METHOD path". Watches and leases
// are left out.
type requests struct {
	mu  sync.Mutex
	all []string
}

func (r *requests) add(q *http.Request) {
	if q.URL.Query().Has("watch") || strings.Contains(q.URL.Path, "/leases") {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, q.Method+" "+q.URL.Path)
}

// count returns how many requests there were.
func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// take returns the requests since the last call.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.all
	r.all = nil
	return taken
}

// matching returns how many of the requests have one of the methods and contain a text.
func matching(requests []string, text string, methods ...string) (count int) {
	for _, request := range requests {
		method, path, _ := strings.Cut(request, " ")
		if slices.Contains(methods, method) && strings.Contains(path, text) {
			count++
		}
	}
	return count
}

// roundTripper is a function that makes requests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// startCounted starts an operator whose requests are counted.
func startCounted(t *testing.T) *requests {
	t.Helper()
	counted := &requests{}
	access := rest.CopyConfig(operatorConfig)
	access.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			counted.add(q)
			return next.RoundTrip(q)
		})
	})
	startAs(t, access)
	return counted
}

// reconciliations returns how many reconciliations of a controller there were in this process.
func reconciliations(t *testing.T, controller string) float64 {
	t.Helper()
	return counter(t, "controller_runtime_reconcile_total", controller)
}

// counter returns the sum of a counter of controller-runtime for a controller.
func counter(t *testing.T, name, controller string) (count float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				if label.GetName() == "controller" && label.GetValue() == controller {
					count += metric.Counter.GetValue()
				}
			}
		}
	}
	return count
}

// questions returns how often pods were asked.
func questions(pods []*pod) (count int) {
	for _, p := range pods {
		p.mu.Lock()
		count += p.asked
		p.mu.Unlock()
	}
	return count
}

func TestWhatARolloutCostsDependsOnThePodsThatGetAnotherSet(t *testing.T) {
	counted := startCounted(t)
	ns, elsewhere := namespace(t, nil), namespace(t, nil)
	orders, bills := hashing(ns, "orders", "sha-256"), hashing(elsewhere, "bills", "sha-256")
	withSteps(orders)
	create(t, orders)
	create(t, bills)
	var pods, others []*pod
	for range 5 {
		pods = append(pods, runPod(t, ns))
	}
	for range 20 {
		others = append(others, runPod(t, elsewhere))
	}
	propagated := func(p *v1alpha1.CryptoProfile, brokers int32) {
		expectStatus(t, p, has{accepted: "True Valid", propagated: "True AllUpdated", pods: brokers, updated: brokers})
	}
	propagated(orders, 5)
	propagated(bills, 20)

	// expectCost checks what was asked since the last call.
	expectCost := func(t *testing.T, before int) {
		t.Helper()
		asked := counted.take()
		sets := matching(asked, "/namespaces/"+ns+"/configmaps", http.MethodPost, http.MethodPut, http.MethodPatch)
		annotations := matching(asked, "/namespaces/"+ns+"/pods/", http.MethodPatch)
		if sets == 0 || annotations < len(pods) || annotations > sets*len(pods) {
			t.Errorf("found %d sets and %d annotations, expected one annotation for each of %d pods and set at most:\n%s", sets, annotations, len(pods), strings.Join(asked, "\n"))
		}
		if reads := matching(asked, "", http.MethodGet); reads > 0 {
			t.Errorf("found %d reads, expected none:\n%s", reads, strings.Join(asked, "\n"))
		}
		// Events of what happened before may come now, because they are sent in the background.
		late := matching(asked, "/namespaces/"+elsewhere+"/events", http.MethodPost, http.MethodPatch)
		if found := matching(asked, "/namespaces/"+elsewhere+"/", http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete); found > late {
			t.Errorf("found %d requests for a namespace without the change:\n%s", found, strings.Join(asked, "\n"))
		}
		if found := questions(others) - before; found > 0 {
			t.Errorf("brokers without the change were asked %d questions", found)
		}
	}

	counted.take()
	before := questions(others)
	update(t, orders, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectRollout(t, orders, pods, v1alpha1.RolloutPaused, 20, 1, 4)
	t.Run("in a step", func(t *testing.T) { expectCost(t, before) })

	t.Run("and nothing while nothing happens, however often the operator looks at the rollout", func(t *testing.T) {
		requests, asked, looks := -1, 0, 0.0
		eventually(t, "two looks make no request", func() error {
			ended := reconciliations(t, "rollout") // before the requests are counted: all reconciliations have ended, and their requests are included
			if now := counted.count(); now != requests {
				requests, asked, looks = now, questions(pods), reconciliations(t, "rollout")
			}
			if ended < looks+2 {
				return fmt.Errorf("there were %d requests", requests)
			}
			return nil
		})
		if found := questions(pods) - asked; found >= 2*len(pods) {
			t.Errorf("%d brokers were asked %d questions during two looks, expected fewer than one for each look", len(pods), found)
		}
	})

	counted.take()
	update(t, orders, func(p *v1alpha1.CryptoProfile) {
		p.Annotations = map[string]string{v1alpha1.PromoteAnnotation: p.Status.Rollout.Attempt}
	})
	expectRollout(t, orders, pods, v1alpha1.RolloutComplete, 100, 0, 0)
	propagated(orders, 5)
	t.Run("in the last step", func(t *testing.T) { expectCost(t, before) })
}

func TestAnEventOfAPodThatSaysNothingOfItsBrokerCostsNothing(t *testing.T) {
	const events = 20
	counted := startCounted(t)
	ns := namespace(t, nil)
	orders := hashing(ns, "orders", "sha-256")
	create(t, orders)
	busy, last := runPod(t, ns), runPod(t, ns)
	expectStatus(t, orders, has{accepted: "True Valid", propagated: "True AllUpdated", pods: 2, updated: 2})

	counted.take()
	annotating, asking, busyAsked, lastAsked := reconciliations(t, "pod-annotation"), reconciliations(t, "broker-confirmation"), questions([]*pod{busy}), questions([]*pod{last})
	for i := range events {
		if err := apiServer.Patch(t.Context(), busy.object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"event":"%d"}}}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	// The event of a restarted broker comes after these.
	last.status(func(status *corev1.PodStatus) { status.InitContainerStatuses[0].ContainerID = "test://2" })
	eventually(t, "the broker that began again is asked", func() error {
		if questions([]*pod{last}) == lastAsked {
			return errors.New("not yet")
		}
		return nil
	})
	if found := questions([]*pod{busy}) - busyAsked; found > 0 {
		t.Errorf("the broker was asked %d questions because of other events of its pod", found)
	}
	if found := reconciliations(t, "pod-annotation") - annotating; found > 0 {
		t.Errorf("%g annotations were considered, expected none", found)
	}
	if found := reconciliations(t, "broker-confirmation") - asking; found >= events/2 {
		t.Errorf("%g questions were considered, expected those to the broker that began again", found)
	}
	if asked := counted.take(); matching(asked, "/pods", http.MethodGet, http.MethodPatch) > 0 || len(asked) >= events/2 {
		t.Errorf("found requests, expected the status of a profile at most:\n%s", strings.Join(asked, "\n"))
	}
}
