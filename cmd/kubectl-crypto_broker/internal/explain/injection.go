// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/coverage"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

// calling describes how brokers are injected into the pods of a namespace.
type calling struct {
	// known reports whether all webhooks and policies could be read.
	known bool
	// installed reports whether a webhook or a policy injects in any namespace.
	installed bool
	// covers reports whether it injects in this namespace.
	covers bool
	since  metav1.Time
	// policy reports whether the API server injects by a policy.
	policy bool
	// service is the Service at which the API server calls the operator. It is nil if the API
	// server does not call it, or calls it by a URL.
	service *admissionregistrationv1.ServiceReference
	// ignores reports whether a pod is admitted without a broker if the injection
	// fails.
	ignores bool
	// broken says why a new pod gets no broker or is refused. It is empty if no such reason was
	// found.
	broken string
}

// without says when pods that ask for a broker are created without one.
func (c calling) without() string {
	if c.policy {
		return "the policies were incomplete"
	}
	return "the operator could not be called"
}

// hindrance returns why a new pod would get no broker either. It is empty if no reason was found.
func (c calling) hindrance() string {
	switch {
	case c.known && !c.installed:
		return "The operator is not installed: there is neither its webhook nor its policies."
	case c.known && !c.covers:
		return "The operator does not inject into this namespace: see webhook.excludedNamespaces of the chart."
	case c.broken != "":
		return "A restart would not bring a broker now: " + c.broken
	default:
		return ""
	}
}

// explainInjection prints how a pod of the namespace gets its broker: by the
// webhook of the operator, or by policies in the API server.
func explainInjection(ctx context.Context, client kubernetes.Interface, namespace string, namespaceLabels map[string]string, e *explanation) calling {
	webhook := explainWebhook(ctx, client, namespace, namespaceLabels, e)
	if webhook.covers {
		return webhook
	}
	policies := explainPolicies(ctx, client, namespace, namespaceLabels, webhook.installed, e)
	if policies.installed {
		return policies
	}
	known := webhook.known && policies.known
	if known && !webhook.installed {
		if refuses, err := coverage.RefusesUninjected(ctx, client, namespaceLabels); err == nil && refuses {
			e.add("operator", "its MutatingWebhookConfiguration or its MutatingAdmissionPolicies were deleted; its other policies refuse pods that ask for a broker")
			return calling{known: true, installed: true, covers: true, broken: "the MutatingWebhookConfiguration or the MutatingAdmissionPolicies of the operator were deleted. " +
				"Restore them: helm upgrade with the values of the release; until then, new pods that ask for a broker are refused."}
		}
		e.add("operator", "it is not installed: there is neither a webhook nor a policy of it")
	}
	return calling{known: known, installed: webhook.installed}
}

// explainWebhook reports whether the API server calls the operator.
func explainWebhook(ctx context.Context, client kubernetes.Interface, namespace string, namespaceLabels map[string]string, e *explanation) calling {
	webhooks, err := coverage.InjectingWebhooks(ctx, client)
	if err != nil {
		e.add("webhook", "whether the operator is called is not known: %s", apierror.OneLine(apierror.Plain(err)))
		return calling{}
	}
	c := calling{known: true, installed: len(webhooks) > 0}
	for _, w := range webhooks {
		if !coverage.Selects(w.NamespaceSelector, namespaceLabels) {
			continue
		}
		c.covers, c.since, c.service = true, w.In.CreationTimestamp, w.ClientConfig.Service
		c.ignores = failure(w.FailurePolicy) == admissionregistrationv1.Ignore
		e.add("webhook", "%s of %s covers the namespace since %s (failurePolicy %s)",
			w.Name, w.In.Name, w.In.CreationTimestamp.UTC().Format(text.TimeFormat), failure(w.FailurePolicy))
		if len(w.ClientConfig.CABundle) == 0 {
			e.add("webhook", "its caBundle is empty: the operator has not started yet, and calls fail")
			c.broken = "the operator has not started yet, and " + until(failure(w.FailurePolicy))
		}
		return c
	}
	if c.installed {
		e.add("webhook", "the operator's webhook leaves out namespace %s", namespace)
	}
	return c
}

func failure(policy *admissionregistrationv1.FailurePolicyType) admissionregistrationv1.FailurePolicyType {
	if policy == nil {
		return admissionregistrationv1.Fail
	}
	return *policy
}

// until returns what happens to pods that ask for a broker while none can be injected.
func until(policy admissionregistrationv1.FailurePolicyType) string {
	if policy == admissionregistrationv1.Ignore {
		return "new pods that ask for a broker get none until then."
	}
	return "new pods that ask for a broker are refused until then."
}
