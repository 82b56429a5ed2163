// SPDX-License-Identifier: Apache-2.0

package coverage

import (
	"context"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// called is an injecting webhook of the operator, with its configuration.
type called struct {
	*admissionregistrationv1.MutatingWebhook
	In *admissionregistrationv1.MutatingWebhookConfiguration
}

// besidePolicies is the match condition of webhooks that are called only for pods
// which the operator's policies did not inject.
const besidePolicies = "not-injected-by-policy"

// InjectingWebhooks returns the operator's webhooks that inject. It leaves out webhooks
// that are called only for pods which policies did not inject.
func InjectingWebhooks(ctx context.Context, client kubernetes.Interface) (found []called, err error) {
	configurations, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range configurations.Items {
		configuration := &configurations.Items[i]
		for j := range configuration.Webhooks {
			w := &configuration.Webhooks[j]
			isBesidePolicies := slices.ContainsFunc(w.MatchConditions, func(condition admissionregistrationv1.MatchCondition) bool { return condition.Name == besidePolicies })
			if strings.HasSuffix(w.Name, ".inject."+v1alpha1.GroupVersion.Group) && !isBesidePolicies {
				found = append(found, called{w, configuration})
			}
		}
	}
	return found, nil
}

// InjectingPolicies returns the policies that inject brokers. If Kubernetes has no
// such policies, the error is the API server's NotFound.
func InjectingPolicies(ctx context.Context, client kubernetes.Interface) (found []*admissionregistrationv1.MutatingAdmissionPolicy, err error) {
	policies, err := client.AdmissionregistrationV1().MutatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range policies.Items {
		kind := policies.Items[i].Spec.ParamKind
		if kind != nil && kind.Kind == "InjectionTemplate" && strings.HasPrefix(kind.APIVersion, v1alpha1.GroupVersion.Group+"/") {
			found = append(found, &policies.Items[i])
		}
	}
	return found, nil
}

// RefusesUninjected reports whether a policy of the operator refuses pods of a namespace
// that ask for a broker and have none.
func RefusesUninjected(ctx context.Context, client kubernetes.Interface, namespaceLabels map[string]string) (bool, error) {
	policies, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(policies.Items, func(policy admissionregistrationv1.ValidatingAdmissionPolicy) bool {
		kind, constraints := policy.Spec.ParamKind, policy.Spec.MatchConstraints
		return kind != nil && kind.Kind == "InjectionTemplate" && strings.HasPrefix(kind.APIVersion, v1alpha1.GroupVersion.Group+"/") &&
			constraints != nil && Selects(constraints.NamespaceSelector, namespaceLabels)
	}), nil
}

// NamespacesOf returns a policy's selector of namespaces, nil for all.
func NamespacesOf(policy *admissionregistrationv1.MutatingAdmissionPolicy) *metav1.LabelSelector {
	if constraints := policy.Spec.MatchConstraints; constraints != nil {
		return constraints.NamespaceSelector
	}
	return nil
}

// Selects reports whether a selector matches a set of labels. A nil selector matches all labels.
// An invalid selector matches none.
func Selects(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return selector == nil || err == nil && parsed.Matches(labels.Set(set))
}
