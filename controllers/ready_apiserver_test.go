// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// The states that kstatus, which Flux and others use, gives an object.
const (
	inProgress = "InProgress"
	failed     = "Failed"
	current    = "Current"
)

// kstatus returns the state that the rules of kstatus give an object of a kind that they do
// not know: a status about an older generation means InProgress, whatever its conditions are.
func kstatus(generation int64, status v1alpha1.ProfileStatus) string {
	ready := meta.FindStatusCondition(status.Conditions, "Ready")
	switch {
	case status.ObservedGeneration != generation, meta.IsStatusConditionTrue(status.Conditions, "Reconciling"):
		return inProgress
	case meta.IsStatusConditionTrue(status.Conditions, "Stalled"):
		return failed
	case ready == nil || ready.Status == metav1.ConditionTrue:
		return current
	default:
		return inProgress
	}
}

// expectReady waits for a status and reason of the condition Ready about the current
// generation, and for the state of kstatus.
func expectReady(t *testing.T, object client.Object, want, state string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the condition Ready is %s, and kstatus says %s", want, state), func() error {
		if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		status := statusOf(object)
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		if c == nil || string(c.Status)+" "+c.Reason != want || c.ObservedGeneration != object.GetGeneration() ||
			kstatus(object.GetGeneration(), status) != state {
			return errNotYet(status)
		}
		return nil
	})
}

func statusOf(object client.Object) v1alpha1.ProfileStatus {
	if p, is := object.(*v1alpha1.CryptoProfile); is {
		return p.Status
	}
	return object.(*v1alpha1.ClusterCryptoProfile).Status.ProfileStatus
}

func TestAProfileThatNoOperatorHasSeenIsInProgress(t *testing.T) {
	p := hashing(namespace(t, nil), "orders", "sha3-512")
	c := clusterHashing("unseen", "sha3-512", nil)
	for _, object := range []client.Object{p, c} {
		create(t, object)
		if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		if found := kstatus(object.GetGeneration(), statusOf(object)); found != inProgress {
			t.Errorf("found %s, expected %s, with %+v", found, inProgress, statusOf(object))
		}
	}
}

func TestAProfileIsReadyWhenBrokersServeWhatIsWanted(t *testing.T) {
	start(t)
	ns := namespace(t, map[string]string{"tier": "ready"})
	own, shared := hashing(ns, "orders", "sha3-512"), clusterHashing("ready", "sha3-512", map[string]string{"tier": "ready"})
	both := []client.Object{own, shared}
	for _, object := range both {
		create(t, object)
		expectReady(t, object, "True NoPods", current)
	}
	broker := runPod(t, ns)
	for _, object := range both {
		expectReady(t, object, "True AllUpdated", current)
	}

	broker.mu.Lock()
	broker.ignoring = 1 << 20
	broker.mu.Unlock()
	update(t, own, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectReady(t, own, "False InProgress", inProgress)
	expectReady(t, own, "False TriesExhausted", inProgress)

	update(t, own, func(p *v1alpha1.CryptoProfile) {
		p.Spec.Deprecation = &v1alpha1.Deprecation{ReplacedBy: "orders"} // past the schema, where no webhook is
	})
	expectReady(t, own, "False Invalid", failed)
	broker.mu.Lock()
	broker.ignoring = 0
	broker.mu.Unlock()
	update(t, own, func(p *v1alpha1.CryptoProfile) { p.Spec.Deprecation, p.Spec.API.HashData.HashAlg = nil, "sha3-512" })
	expectReady(t, own, "True AllUpdated", current)
}

func TestAProfileWhoseBrokersCannotBeAskedIsNotSaidToBeReady(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	runPod(t, ns, silent)
	expectReady(t, p, "Unknown Unverified", inProgress)
}
