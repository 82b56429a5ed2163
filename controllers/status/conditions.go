// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// accepted returns the condition Accepted for a verdict.
func accepted(v render.Verdict) metav1.Condition {
	status := metav1.ConditionFalse
	if v.Accepted {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: status, Reason: v.Reason, Message: v.Message}
}

// deleting is the verdict on a deleted profile that only has finalizers left.
var deleting = render.Verdict{Reason: v1alpha1.ReasonDeleting, Message: "The profile is being deleted."}

// conditions makes the conditions of a profile.
type conditions struct {
	operatorNamespace string
	statusPort        int32
	annotate          bool
	assessments       *assessments
}

// propagated returns the condition Propagated for a profile in sets with these numbers of
// brokers. Known problems take precedence over unknown states. During a rollout, the profile has
// not reached all brokers although the set has. rollout is the status of the rollout, or nil.
func (c conditions) propagated(s distribute.Summary, verdict render.Verdict, rollout *v1alpha1.RolloutStatus) metav1.Condition {
	condition := func(status metav1.ConditionStatus, reason, message string, args ...any) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionPropagated, Status: status, Reason: reason, Message: fmt.Sprintf(message, args...)}
	}
	served := fmt.Sprintf("%d of %s %s it", s.Updated, plural(s.Pods, "broker", "brokers"), choose(s.Updated, "serves", "serve"))
	switch {
	case !verdict.Accepted:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, "The profile is not accepted: see the condition Accepted.")
	case s.Refusing > 0:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonRefusedByBroker, "%s; %d refused the set and %s an older one: the broker's log says why.", served, s.Refusing, choose(s.Refusing, "keeps", "keep"))
	case s.Behind > 0:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonBehind, "%s; %s an older set %s, to be updated by the kubelet's own resync, which takes up to 90 s.", served, plural(s.Behind, "still serves", "still serve"), c.waited())
	case s.Waiting > 0:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonBehind, "%s; %s not read any set yet.", served, plural(s.Waiting, "has", "have"))
	case s.Updating+s.Checking > 0:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonInProgress, "%s; %s being brought up to date.", served, plural(s.Updating+s.Checking, "is", "are"))
	case s.Partial > 0:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonRefusedByBroker, "%s, %d of these without some of its profiles: the broker's log says which and why.", served, s.Partial)
	case isOf(rollout, verdict):
		return condition(metav1.ConditionFalse, rollout.Reason(), "%s", rollout.Message)
	case verdict.Rolling != "":
		return condition(metav1.ConditionFalse, v1alpha1.ReasonRolloutProgressing, "The rollout has not reached all brokers: see status.rollout.")
	case s.Unverified > 0:
		return condition(metav1.ConditionUnknown, v1alpha1.ReasonUnverified, "%s; %d could not be asked. To let the operator ask, add a NetworkPolicy that allows ingress to TCP port %d of these pods, or to the port in their annotation %s, from namespace %q; pods on the host's network have no such port and stay unverified.", served, s.Unverified, c.statusPort, contract.MetricsPortAnnotation, c.operatorNamespace)
	case s.Pods == 0:
		return condition(metav1.ConditionTrue, v1alpha1.ReasonNoPods, "No pod with a broker is running.")
	default:
		return condition(metav1.ConditionTrue, v1alpha1.ReasonAllUpdated, "%s.", served)
	}
}

// isOf reports whether the status of a rollout is about the change that has not reached all
// brokers yet.
func isOf(rollout *v1alpha1.RolloutStatus, verdict render.Verdict) bool {
	return rollout != nil && verdict.Rolling != "" && rollout.Digest == verdict.Rolling && rollout.Phase != v1alpha1.RolloutComplete
}

// waited returns the part of a sentence about what the operator has done for brokers that are
// behind. It ends with the word kubelet.
func (c conditions) waited() string {
	if !c.annotate {
		return "since pods are not annotated to make the kubelet sync at once"
	}
	return fmt.Sprintf("after %d annotations that make the kubelet sync at once", distribute.MaxTries)
}

// plural returns a number with its noun: "1 broker", "2 brokers".
func plural(n int, one, more string) string { return fmt.Sprintf("%d %s", n, choose(n, one, more)) }

func choose(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// settled reports whether no broker is being updated or checked.
func settled(s distribute.Summary) bool { return s.Updating+s.Checking == 0 }
