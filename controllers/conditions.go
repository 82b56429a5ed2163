// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// accepted is the condition Accepted for a verdict.
func accepted(v render.Verdict) metav1.Condition {
	status := metav1.ConditionFalse
	if v.Accepted {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: status, Reason: v.Reason, Message: v.Message}
}

// propagator words the condition Propagated.
type propagator struct {
	operatorNamespace string
	statusPort        int32
	annotate          bool
}

// propagated is the condition Propagated for a profile that is in sets with
// these numbers. What is known to be wrong counts before what is not known.
func (p propagator) propagated(s distribute.Summary, isAccepted bool) metav1.Condition {
	condition := func(status metav1.ConditionStatus, reason, message string, args ...any) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionPropagated, Status: status, Reason: reason, Message: fmt.Sprintf(message, args...)}
	}
	served := fmt.Sprintf("%d of %s", s.Updated, brokers(s.Pods))
	serve := "serve it"
	if s.Updated == 1 {
		serve = "serves it"
	}
	switch {
	case !isAccepted:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, "The profile is not accepted: see the condition Accepted.")
	case s.Refusing > 0:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonRefusedByBroker, "%s %s; %d refused the set and keep an older one: their logs say why.", served, serve, s.Refusing)
	case s.Behind > 0:
		how := fmt.Sprintf("after %d tries to hurry their kubelets", distribute.MaxTries)
		if !p.annotate {
			how = "and pods are not annotated to hurry their kubelets"
		}
		return condition(metav1.ConditionFalse, v1alpha1.ReasonBehind, "%s %s; %d still serve an older set %s, and follow when their kubelets resync, which takes up to 90 s.", served, serve, s.Behind, how)
	case s.Waiting > 0:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonBehind, "%s %s; %d have not read any set yet.", served, serve, s.Waiting)
	case s.Hurried+s.Checking > 0:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonInProgress, "%s %s; %d are being brought up to date.", served, serve, s.Hurried+s.Checking)
	case s.Partial > 0:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonRefusedByBroker, "%s %s; %d of these left profiles of it out: their logs say which and why.", served, serve, s.Partial)
	case s.Unverified > 0:
		return condition(metav1.ConditionUnknown, v1alpha1.ReasonUnverified, "%s %s; %d could not be asked. To let the operator ask, add a NetworkPolicy that allows ingress to TCP port %d of these pods from namespace %q.", served, serve, s.Unverified, p.statusPort, p.operatorNamespace)
	case s.Pods == 0:
		return condition(metav1.ConditionTrue, v1alpha1.ReasonNoPods, "No pod with a broker is running.")
	default:
		return condition(metav1.ConditionTrue, v1alpha1.ReasonAllUpdated, "%s %s.", served, serve)
	}
}

// brokers counts in words.
func brokers(n int) string {
	if n == 1 {
		return "1 broker"
	}
	return fmt.Sprintf("%d brokers", n)
}

// settled is true when nothing changes any more without something new
// happening.
func settled(s distribute.Summary) bool { return s.Hurried+s.Checking == 0 }

// sum adds up namespaces.
func sum(a, b distribute.Summary) distribute.Summary {
	return distribute.Summary{
		Pods:       a.Pods + b.Pods,
		Checking:   a.Checking + b.Checking,
		Updated:    a.Updated + b.Updated,
		Partial:    a.Partial + b.Partial,
		Hurried:    a.Hurried + b.Hurried,
		Behind:     a.Behind + b.Behind,
		Refusing:   a.Refusing + b.Refusing,
		Waiting:    a.Waiting + b.Waiting,
		Unverified: a.Unverified + b.Unverified,
		Took:       max(a.Took, b.Took),
	}
}
