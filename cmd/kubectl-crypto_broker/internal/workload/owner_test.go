// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPodThatClaimsTheControllerOfAnotherDoesNotChangeTheOwnerOfThatOne(t *testing.T) {
	owners := NewOwners(nil)
	pod := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: "the same", Controller: new(true)},
		}}}
	}
	for _, test := range []struct{ namespace, name string }{{"evil", "vault"}, {"bank", "odd"}, {"bank", "vault"}} {
		found, err := owners.Of(t.Context(), pod(test.namespace, test.name))
		if w, _ := found.Workload(); err != nil || w != (Workload{StatefulSet, test.namespace, test.name}) {
			t.Errorf("found %+v, %v; expected %+v", w, err, test)
		}
	}
}
