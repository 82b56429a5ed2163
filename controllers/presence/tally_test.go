// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
)

// podOf returns a pod of the namespace shop that an owner controls.
func podOf(owner, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner, UID: types.UID(owner), Controller: new(true)}},
	}}
	for _, change := range change {
		change(pod)
	}
	return pod
}

func TestAPodAmongTenThousandIsJudgedAlone(t *testing.T) {
	judged := 0
	options := testOptions()
	wanted := options.Wanted
	options.Wanted = func(pod *corev1.Pod, byDefault bool) (bool, error) {
		judged++
		return wanted(pod, byDefault)
	}
	r, q := &reconciler{options: options, tally: newTally()}, queue.New("presence-test")
	defer q.ShutDown()
	asked := annotated(contract.InjectAnnotation, "true")
	pods := r.podEvents()
	for i := range 10_000 {
		pods.Create(context.Background(), event.CreateEvent{Object: podOf(fmt.Sprint("owner-", i/100), fmt.Sprint(i), asked)}, q)
	}
	judged = 0
	ended := podOf("owner-0", "0", asked, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	pods.Update(context.Background(), event.UpdateEvent{ObjectOld: podOf("owner-0", "0", asked), ObjectNew: ended}, q)
	pods.Delete(context.Background(), event.DeleteEvent{Object: ended}, q)
	pods.Create(context.Background(), event.CreateEvent{Object: podOf("owner-0", "new", asked)}, q)
	if judged > 2 {
		t.Errorf("judged pods %d times, expected twice at most", judged)
	}
	if f, _ := r.tally.of("shop", "owner-0", time.Now()); f.missing != 100 || f.pods != 100 {
		t.Errorf("found %+v, expected 100 pods that miss their broker", f)
	}
}

func TestABrokerWaitsSinceItWasSeenIfTheClockOfItsNodeIsAhead(t *testing.T) {
	tally, ahead := newTally(), observation{state: waiting, since: time.Now().Add(time.Hour)}
	pod := podOf("owner", "0")
	tally.put(pod, ahead)
	tally.put(pod, ahead) // as with each change of the pod
	if f, soon := tally.of("shop", "owner", time.Now()); f.waiting != 0 || soon <= 0 || soon > waitGrace {
		t.Errorf("found %d waiting brokers and the next look after %s, expected none yet and %s at most", f.waiting, soon, waitGrace)
	}
	if f, _ := tally.of("shop", "owner", time.Now().Add(waitGrace)); f.waiting != 1 {
		t.Errorf("after %s, found %d waiting brokers, expected one", waitGrace, f.waiting)
	}
}

func TestCountsByDifferenceAreThoseOfACountAnew(t *testing.T) {
	changes := []func(*corev1.Pod){
		func(*corev1.Pod) {}, // did not ask
		annotated(contract.InjectAnnotation, "true"),
		annotated(contract.InjectAnnotation, "false"),
		annotated(contract.InjectAnnotation, "yes"),
		withBroker("broker:0"),
		withBroker("broker:1"),
		func(p *corev1.Pod) { withBroker("broker:1")(p); running(time.Now().Add(-waitGrace))(p) },
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
	}
	const seed = 35
	random := rand.New(rand.NewPCG(seed, seed))
	options := testOptions()
	byDifference, stored := newTally(), map[string]*corev1.Pod{}
	for step := range 5000 {
		name, owner := fmt.Sprint(random.IntN(40)), fmt.Sprint("owner-", random.IntN(4))
		switch pod, is := stored[name]; {
		case step%50 == 0:
			value := []string{contract.InjectionEnabled, "off"}[random.IntN(2)]
			byDifference.setLabel("shop", value, random.IntN(3) > 0)
		case is && random.IntN(3) == 0:
			byDifference.remove(pod)
			delete(stored, name)
		default:
			pod = podOf(owner, name, changes[random.IntN(len(changes))])
			byDifference.put(pod, options.judge(pod))
			stored[name] = pod
		}
		if step%100 != 99 {
			continue
		}
		anew := newTally()
		if known := byDifference.namespaces["shop"]; known != nil {
			anew.setLabel("shop", known.label, known.labelled)
		}
		for _, pod := range stored {
			anew.put(pod, options.judge(pod))
		}
		for owner := range 4 {
			uid, now := types.UID(fmt.Sprint("owner-", owner)), time.Now()
			found, _ := byDifference.of("shop", uid, now)
			want, _ := anew.of("shop", uid, now)
			if found != want {
				t.Fatalf("after %d steps with seed %d: %s has %+v, expected %+v", step, seed, uid, found, want)
			}
		}
		if found, want := byDifference.namespaces["shop"], anew.namespaces["shop"]; found != nil && want != nil && found.numbers != want.numbers {
			t.Fatalf("after %d steps with seed %d: the namespace has %v, expected %v", step, seed, found.numbers, want.numbers)
		}
	}
	for _, pod := range stored {
		byDifference.remove(pod)
	}
	byDifference.setLabel("shop", "", false)
	if len(byDifference.namespaces) != 0 {
		t.Errorf("%d namespaces are remembered, expected none without pods and label", len(byDifference.namespaces))
	}
}

func TestOnlyOwnersWithSomethingToReportAreRequested(t *testing.T) {
	asked := annotated(contract.InjectAnnotation, "true")
	for sentence, test := range map[string]struct {
		labelled      bool
		before, after []func(*corev1.Pod) // nil for no pod
		requested     int
	}{
		"a pod comes that did not ask":                                     {false, nil, []func(*corev1.Pod){}, 0},
		"a pod comes that did not ask, where its namespace does":           {true, nil, []func(*corev1.Pod){}, 1},
		"a pod comes without the broker that it asked for":                 {false, nil, []func(*corev1.Pod){asked}, 1},
		"a pod comes with its broker":                                      {true, nil, []func(*corev1.Pod){asked, withBroker("broker:1")}, 0},
		"a pod stays without its broker":                                   {false, []func(*corev1.Pod){asked}, []func(*corev1.Pod){asked}, 0},
		"a pod without its broker goes":                                    {false, []func(*corev1.Pod){asked}, nil, 1},
		"a pod that did not ask goes":                                      {false, []func(*corev1.Pod){}, nil, 0},
		"a pod without its broker ends":                                    {false, []func(*corev1.Pod){asked}, []func(*corev1.Pod){asked, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }}, 1},
		"a pod of that name without its broker comes, of the same owner":   {false, []func(*corev1.Pod){asked}, []func(*corev1.Pod){asked, func(p *corev1.Pod) { p.UID = "other" }}, 0},
		"a pod of that name without its broker comes, of another owner":    {false, []func(*corev1.Pod){asked}, []func(*corev1.Pod){asked, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }}, 2},
		"the broker of a pod that waits for its first profile begins anew": {false, []func(*corev1.Pod){withBroker("broker:1"), running(time.Now().Add(-time.Hour))}, []func(*corev1.Pod){withBroker("broker:1"), running(time.Now())}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			options, all := testOptions(), newTally()
			if test.labelled {
				all.setLabel("shop", contract.InjectionEnabled, true)
			}
			if test.before != nil {
				pod := podOf("orders", "orders-0", test.before...)
				all.put(pod, options.judge(pod))
			}
			var concerned []types.UID
			if test.after == nil {
				concerned = all.remove(podOf("orders", "orders-0"))
			} else {
				pod := podOf("orders", "orders-0", test.after...)
				concerned = all.put(pod, options.judge(pod))
			}
			if len(concerned) != test.requested {
				t.Errorf("requested %q, expected %d", concerned, test.requested)
			}
		})
	}
}

func TestALabelRequestsTheOwnersOfPodsThatDidNotAsk(t *testing.T) {
	options, all := testOptions(), newTally()
	for owner, change := range map[string]func(*corev1.Pod){
		"silent": func(*corev1.Pod) {}, "asked": annotated(contract.InjectAnnotation, "true"), "declined": annotated(contract.InjectAnnotation, "false"),
	} {
		pod := podOf(owner, owner+"-0", change)
		all.put(pod, options.judge(pod))
	}
	for _, step := range []struct {
		value     string
		labelled  bool
		requested int
		isNew     bool
	}{
		{"off", true, 0, true}, {"off", true, 0, false}, {contract.InjectionEnabled, true, 1, true}, {"", false, 1, false}, {"off", true, 0, true},
	} {
		if concerned, isNew := all.setLabel("shop", step.value, step.labelled); len(concerned) != step.requested || isNew != step.isNew {
			t.Errorf("%q: requested %q, new is %t; expected %+v", step.value, concerned, isNew, step)
		}
	}
}
