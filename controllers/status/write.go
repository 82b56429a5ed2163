// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// fieldRollout is the field of the status that the reconciler of rollouts writes.
const fieldRollout = "rollout"

// fill fills in the status, and reports whether more than numbers changed.
func (c conditions) fill(status *v1alpha1.ProfileStatus, object client.Object, spec *v1alpha1.ProfileSpec, verdict render.Verdict, s distribute.Summary) bool {
	generation := object.GetGeneration()
	urgent := status.ObservedGeneration != generation
	status.ObservedGeneration = generation
	status.ProfileName = render.Name(object.GetName(), spec)
	assessment := c.assessments.of(object, spec)
	status.Strength, status.Weakest, status.FIPS, status.Operations = assessment.Strength, assessment.Weakest, assessment.FIPS, assessment.Operations
	status.Pods = int32(s.Pods)
	status.UpdatedPods = int32(s.Updated)
	status.UnverifiedPods = int32(s.Unverified)
	accepted, propagated, degraded := accepted(verdict), c.propagated(s, verdict, status.Rollout), c.degraded(s, verdict)
	urgent = statuspatch.SetCondition(&status.Conditions, accepted, generation) || urgent
	for _, other := range []metav1.Condition{propagated, degraded, ready(accepted, degraded, propagated)} {
		statuspatch.SetCondition(&status.Conditions, other, generation)
	}
	setStalled(&status.Conditions, verdict, status.Rollout, generation)
	return urgent
}

// differenceOf returns the difference between a status and the written one. isUrgent is the
// result of fill.
func differenceOf(status, written *v1alpha1.ProfileStatus, equal, isUrgent bool) difference {
	switch {
	case equal:
		return same
	case isUrgent:
		return urgent
	case !sameReasons(status.Conditions, written.Conditions):
		return inReasons
	default:
		return inNumbers
	}
}

// sameReasons reports whether two lists have the same conditions, each with the same
// status and reason.
func sameReasons(a, b []metav1.Condition) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	})
}
