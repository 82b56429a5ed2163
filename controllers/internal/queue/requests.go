// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// Request returns the request for an object that has no namespace: a Namespace or a
// ClusterCryptoProfile.
func Request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// SpecChanged ignores updates of the status of a profile. The operator makes most of
// them itself. The annotation that allows a weaker profile counts as part of
// the spec.
var SpecChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			e.ObjectOld.GetAnnotations()[v1alpha1.AllowWeakerAnnotation] != e.ObjectNew.GetAnnotations()[v1alpha1.AllowWeakerAnnotation] ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	},
}
