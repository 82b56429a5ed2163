// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// PromotionChanged accepts the events that SpecChanged accepts, and updates of the annotation that
// promotes a rollout.
var PromotionChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return SpecChanged.Update(e) ||
			e.ObjectOld.GetAnnotations()[v1alpha1.PromoteAnnotation] != e.ObjectNew.GetAnnotations()[v1alpha1.PromoteAnnotation]
	},
}

// RolloutChanged accepts the events that SpecChanged accepts, and updates of status.rollout.
var RolloutChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return SpecChanged.Update(e) || !equality.Semantic.DeepEqual(rolloutOf(e.ObjectOld), rolloutOf(e.ObjectNew))
	},
}

// StepChanged accepts the events that SpecChanged accepts, and updates of the parts of
// status.rollout that decide which brokers get the new profile. The other parts change with every
// broker, and no set depends on them.
var StepChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return SpecChanged.Update(e) || stepOf(rolloutOf(e.ObjectOld)) != stepOf(rolloutOf(e.ObjectNew))
	},
}

// step has the parts of status.rollout that decide which brokers get the new profile.
type step struct {
	digest             string
	step               int32
	below              int64
	complete, returned bool
}

func stepOf(r *v1alpha1.RolloutStatus) step {
	if r == nil {
		return step{}
	}
	return step{r.Digest, r.Step, r.Below, r.Phase == v1alpha1.RolloutComplete, r.Phase == v1alpha1.RolloutReturned}
}

// rolloutOf returns status.rollout of a profile of either kind.
func rolloutOf(o client.Object) *v1alpha1.RolloutStatus {
	switch p := o.(type) {
	case *v1alpha1.CryptoProfile:
		return p.Status.Rollout
	case *v1alpha1.ClusterCryptoProfile:
		return p.Status.Rollout
	}
	return nil
}
