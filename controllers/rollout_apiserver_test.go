// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// rolledOut returns how many of the pods serve the new side of a rollout of orders, and how
// many the old one.
func rolledOut(pods []*pod) (new, old int) {
	for _, p := range pods {
		p.mu.Lock()
		for _, r := range p.answer.Rollouts {
			switch {
			case r.Profile != "orders":
			case r.New:
				new++
			default:
				old++
			}
		}
		p.mu.Unlock()
	}
	return new, old
}

// expectRollout waits for a phase and a weight of the rollout of orders, and until so many
// pods are on each side.
func expectRollout(t *testing.T, p client.Object, pods []*pod, phase string, weight int32, new, old int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the rollout is %s at %d %%", phase, weight), func() error {
		if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		n, o := rolledOut(pods)
		if r := statusOf(p).Rollout; r == nil || r.Phase != phase || r.Weight != weight || n != new || o != old {
			return fmt.Errorf("%+v, with %d pods on the new side and %d on the old one", r, n, o)
		}
		return nil
	})
}

// withSteps makes changes of a profile go to a fifth of the pods, and then to all once
// somebody promotes that.
func withSteps(p *v1alpha1.CryptoProfile) {
	p.Spec.Rollout = &v1alpha1.Rollout{Steps: []v1alpha1.RolloutStep{{SetWeight: ptr.To[int32](20), Pause: &v1alpha1.RolloutPause{}}}}
}

func TestAChangeGoesToSomePodsFirst(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	orders := hashing(ns, "orders", "sha-256")
	withSteps(orders)
	create(t, orders)
	var pods []*pod
	for range 10 {
		pods = append(pods, runPod(t, ns))
	}
	expectFile(t, ns, fileOf("orders", "sha-256"))
	before := setIn(t, ns).Data[profile.FileName]
	expectServed(t, before, pods...)

	update(t, orders, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectRollout(t, orders, pods, v1alpha1.RolloutPaused, 20, 2, 8)
	expectEvent(t, orders, corev1.EventTypeNormal, "RolloutPaused", "waits until somebody promotes it")

	t.Run("and back when the change is taken back, which the guard does not prevent", func(t *testing.T) {
		update(t, orders, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" })
		expectServed(t, before, pods...)
		eventually(t, "there is no rollout", func() error {
			if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(orders), orders); err != nil || orders.Status.Rollout != nil {
				return errNotYet(orders.Status)
			}
			return nil
		})
	})
	t.Run("and to all once it is promoted", func(t *testing.T) {
		update(t, orders, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-384" })
		expectRollout(t, orders, pods, v1alpha1.RolloutPaused, 20, 2, 8)
		update(t, orders, func(p *v1alpha1.CryptoProfile) {
			p.Annotations = map[string]string{v1alpha1.PromoteAnnotation: p.Status.Rollout.Attempt}
		})
		expectRollout(t, orders, pods, v1alpha1.RolloutComplete, 100, 0, 0)
		expectServed(t, setIn(t, ns).Data[profile.FileName], pods...)
	})
	t.Run("and goes back by itself when calls fail with it", func(t *testing.T) {
		before := setIn(t, ns).Data[profile.FileName]
		for _, p := range pods {
			p.mu.Lock()
			p.failing = true
			p.mu.Unlock()
		}
		update(t, orders, func(p *v1alpha1.CryptoProfile) {
			p.Spec.API.HashData.HashAlg, p.Spec.Rollout.OnFailure = "sha-512", v1alpha1.OnFailureReturn
		})
		expectRollout(t, orders, pods, v1alpha1.RolloutReturned, 0, 0, 0)
		expectEvent(t, orders, corev1.EventTypeWarning, "RolloutReturned", "200 of 200 calls failed with the new profile")
		expectServed(t, before, pods...)
	})
}

func TestAnotherOperatorGoesOnWithARollout(t *testing.T) {
	first := start(t)
	ns := namespace(t, nil)
	orders := hashing(ns, "orders", "sha-256")
	withSteps(orders)
	create(t, orders)
	var pods []*pod
	for range 10 {
		pods = append(pods, runPod(t, ns))
	}
	expectFile(t, ns, fileOf("orders", "sha-256"))
	update(t, orders, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectRollout(t, orders, pods, v1alpha1.RolloutPaused, 20, 2, 8)
	attempt, before := orders.Status.Rollout.Attempt, setIn(t, ns).Data[profile.FileName]
	expectReady(t, orders, "False RolloutPaused", inProgress)
	first.stop()

	// A fault that nobody has noticed yet: calls with the new profile now fail.
	for _, p := range pods {
		p.mu.Lock()
		p.failing = true
		p.mu.Unlock()
		p.load()
	}
	update(t, orders, func(p *v1alpha1.CryptoProfile) {
		p.Spec.Rollout.Steps[0].Pause.Duration = &metav1.Duration{Duration: time.Millisecond}
	})
	start(t)
	expectRollout(t, orders, pods, v1alpha1.RolloutFailed, 20, 2, 8)
	if orders.Status.Rollout.Attempt != attempt || setIn(t, ns).Data[profile.FileName] != before {
		t.Errorf("the rollout began again: %+v", orders.Status.Rollout)
	}
	expectReady(t, orders, "False RolloutFailed", failed)
}

func TestABrokerOfAnOlderImageStopsARollout(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	orders := hashing(ns, "orders", "sha-256")
	withSteps(orders)
	create(t, orders)
	pods := []*pod{runPod(t, ns), runPod(t, ns, func(p *pod) { p.old = true })}
	expectFile(t, ns, fileOf("orders", "sha-256"))
	before := setIn(t, ns).Data[profile.FileName]
	expectServed(t, before, pods...)
	update(t, orders, func(p *v1alpha1.CryptoProfile) {
		p.Spec.API.HashData.HashAlg, p.Spec.Rollout.OnFailure = "sha-512", v1alpha1.OnFailureReturn
	})
	expectRollout(t, orders, pods, v1alpha1.RolloutReturned, 0, 0, 0)
	expectEvent(t, orders, corev1.EventTypeWarning, "RolloutReturned", "The broker in pod "+keyOf(pods[1]).String()+" refuses it.")
	expectServed(t, before, pods...)
}

func TestAChangeThatSomebodyAllowedLaterIsRolledOut(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	orders := hashing(ns, "orders", "sha-512")
	withSteps(orders)
	create(t, orders)
	pods := []*pod{runPod(t, ns), runPod(t, ns)}
	expectFile(t, ns, fileOf("orders", "sha-512"))
	before := setIn(t, ns).Data[profile.FileName]
	expectServed(t, before, pods...)
	update(t, orders, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" })
	message := expectWithheld(t, orders, metav1.ConditionTrue)
	if orders.Status.Rollout != nil {
		t.Errorf("a change that is withheld is rolled out: %+v", orders.Status.Rollout)
	}
	allow(t, orders, message)
	expectRollout(t, orders, pods, v1alpha1.RolloutPaused, 20, 1, 1)
}

func TestAClusterWideChangeGoesToSelectedNamespacesFirst(t *testing.T) {
	start(t)
	label := map[string]string{"rollout-of": "cluster"}
	test := namespace(t, map[string]string{"rollout-of": "cluster", "stage": "test"})
	production := []string{namespace(t, label), namespace(t, label)}
	orders := clusterHashing("orders", "sha-256", label)
	orders.Spec.Rollout = &v1alpha1.Rollout{Steps: []v1alpha1.RolloutStep{
		{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "test"}}, Pause: &v1alpha1.RolloutPause{}},
		{SetWeight: ptr.To[int32](50), Pause: &v1alpha1.RolloutPause{}},
	}}
	create(t, orders)
	var tested, others []*pod
	for range 3 {
		tested = append(tested, runPod(t, test))
		others = append(others, runPod(t, production[0]), runPod(t, production[1]))
	}
	for _, ns := range append(production, test) {
		expectFile(t, ns, fileOf("orders", "sha-256"))
	}
	update(t, orders, func(p *v1alpha1.ClusterCryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectRollout(t, orders, append(others, tested...), v1alpha1.RolloutPaused, 0, 3, 0) // the sets of the other namespaces have the old profile alone
	eventually(t, "the status counts all pods", func() error {
		if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(orders), orders); err != nil {
			return err
		}
		if r := orders.Status.Rollout; r.NewPods != 3 || r.OldPods != 6 {
			return fmt.Errorf("found %d pods with the new profile and %d with the old one, expected 3 and 6", r.NewPods, r.OldPods)
		}
		return nil
	})
	update(t, orders, func(p *v1alpha1.ClusterCryptoProfile) {
		p.Annotations = map[string]string{v1alpha1.PromoteAnnotation: p.Status.Rollout.Attempt + "/1"}
	})
	expectRollout(t, orders, append(others, tested...), v1alpha1.RolloutPaused, 50, 6, 3)
	if new, old := rolledOut(tested); new != 3 || old != 0 {
		t.Errorf("in the selected namespace %d pods have the new profile and %d the old one", new, old)
	}
	expectReady(t, orders, "False RolloutPaused", inProgress)
	update(t, orders, func(p *v1alpha1.ClusterCryptoProfile) {
		p.Annotations = map[string]string{v1alpha1.PromoteAnnotation: p.Status.Rollout.Attempt + "/2"}
	})
	expectRollout(t, orders, append(others, tested...), v1alpha1.RolloutComplete, 100, 0, 0)
	for _, ns := range append(production, test) {
		expectFile(t, ns, fileOf("orders", "sha-512"))
	}
}
