// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
)

// Reasons and actions of events, in addition to the reasons of conditions.
const (
	// eventCredentialsChanged means that all key gateways have read new credentials.
	eventCredentialsChanged = "CredentialsChanged"

	actionOpen    = "Open"
	actionContact = "Contact"
)

// report makes events about changes in the status of a provider.
func report(recorder events.EventRecorder, object client.Object, spec *v1alpha1.KeyProviderSpec, before, after *v1alpha1.KeyProviderStatus) {
	for _, about := range []struct{ condition, action string }{{v1alpha1.ConditionAccepted, actionOpen}, {v1alpha1.ConditionReachable, actionContact}} {
		b, a := meta.FindStatusCondition(before.Conditions, about.condition), meta.FindStatusCondition(after.Conditions, about.condition)
		if kind, changed := kindOf(b, a); changed {
			event.Record(recorder, object, kind, a.Reason, about.action, a.Message)
		}
	}
	if before.SecretVersion != "" && after.SecretVersion != "" && before.SecretVersion != after.SecretVersion && spec.Credentials != nil {
		event.Record(recorder, object, corev1.EventTypeNormal, eventCredentialsChanged, actionOpen,
			fmt.Sprintf("All key gateways have read version %s of the Secret %q.", after.SecretVersion, spec.Credentials.SecretRef.Name))
	}
}

// kindOf returns the type of the event about a change of a condition, and reports whether there
// is an event. Changes to Unknown make no event, unless the reason is that there is no gateway.
func kindOf(before, after *metav1.Condition) (kind string, changed bool) {
	switch {
	case after == nil, before != nil && before.Status == after.Status && before.Reason == after.Reason:
		return "", false
	case after.Status == metav1.ConditionTrue && after.Reason != v1alpha1.ReasonSomeUnreachable:
		return corev1.EventTypeNormal, true
	case after.Status == metav1.ConditionUnknown && after.Reason != v1alpha1.ReasonNoGateway:
		return "", false
	}
	return corev1.EventTypeWarning, true
}
