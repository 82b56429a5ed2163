// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
)

func TestARolloutInANamespaceThatNeverGetsProfilesIsNotLookedAtAgain(t *testing.T) {
	excluded := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "1"}}
	namespaces := state.NewStore()
	namespaces.Update(excluded, func(known *state.Namespace) { known.Decision = &state.Decision{Excluded: true} })
	p := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "orders", UID: "2", Generation: 1}}
	p.Spec.Rollout = tenThenHalf()

	r := &reconciler{namespaces: namespaces}
	status, lasts, err := r.decide(object{Object: p, spec: &p.Spec, status: &p.Status, namespaces: []*corev1.Namespace{excluded}})
	if err != nil || status != nil || lasts {
		t.Errorf("found the status %+v, looked at again: %t, %v; expected none of it", status, lasts, err)
	}
}
