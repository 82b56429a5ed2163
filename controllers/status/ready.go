// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// ready returns the condition Ready, which follows from the other three. It has the reason and
// the message of the first condition that is not healthy.
func ready(accepted, degraded, propagated metav1.Condition) metav1.Condition {
	decides := propagated
	switch {
	case accepted.Status != metav1.ConditionTrue:
		decides = accepted
	case degraded.Status == metav1.ConditionTrue:
		decides = degraded
		decides.Status = metav1.ConditionFalse
	}
	decides.Type = v1alpha1.ConditionReady
	return decides
}

// triedAgain are reasons of profiles that are not accepted, which end without a change of a
// profile: the operator tries again, or the object is deleted.
var triedAgain = []string{v1alpha1.ReasonNotWritten, v1alpha1.ReasonDeleting}

// setStalled sets the condition Stalled while a person has to act: the profile is not
// accepted and the operator does not try again, or its rollout failed. It removes the
// condition otherwise: kstatus expects it only while it is True.
func setStalled(conditions *[]metav1.Condition, verdict render.Verdict, rollout *v1alpha1.RolloutStatus, generation int64) {
	stalled := metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}
	switch {
	case !verdict.Accepted && !slices.Contains(triedAgain, verdict.Reason):
		stalled.Reason, stalled.Message = verdict.Reason, verdict.Message
	case isOf(rollout, verdict) && rollout.HasFailed():
		stalled.Reason, stalled.Message = rollout.Reason(), rollout.Message
	default:
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
		return
	}
	statuspatch.SetCondition(conditions, stalled, generation)
}
