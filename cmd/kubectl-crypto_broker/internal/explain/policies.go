// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/coverage"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

// explainPolicies reports whether the API server injects brokers by a policy. The chart has two
// of them; they take an InjectionTemplate as their parameter. besides reports whether there is a
// webhook, too. Then explainPolicies prints nothing if there is no policy.
func explainPolicies(ctx context.Context, client kubernetes.Interface, namespace string, namespaceLabels map[string]string, besides bool, e *explanation) calling {
	policies, err := coverage.InjectingPolicies(ctx, client)
	switch {
	case apierrors.IsNotFound(err):
		if !besides {
			e.add("policy", "this Kubernetes has no MutatingAdmissionPolicies, which come with 1.36")
		}
		return calling{known: true}
	case err != nil:
		e.add("policy", "whether the API server injects by a policy is not known: %s", apierror.OneLine(apierror.Plain(err)))
		return calling{}
	}
	c := calling{known: true, policy: true, installed: len(policies) > 0}
	for _, policy := range policies {
		if !coverage.Selects(coverage.NamespacesOf(policy), namespaceLabels) {
			continue
		}
		c.covers, c.since = true, policy.CreationTimestamp
		e.add("policy", "%s covers the namespace since %s (failurePolicy %s)", policy.Name, policy.CreationTimestamp.UTC().Format(text.TimeFormat), failure(policy.Spec.FailurePolicy))
		explainBinding(ctx, client, policy, namespaceLabels, &c, e)
		return c
	}
	if c.installed {
		e.add("policy", "the operator's policies leave out namespace %s", namespace)
	}
	return c
}

// explainBinding reports whether the policy is in force, and with which template.
func explainBinding(ctx context.Context, client kubernetes.Interface, policy *admissionregistrationv1.MutatingAdmissionPolicy, namespaceLabels map[string]string, c *calling, e *explanation) {
	bindings, err := client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		e.add("binding", "whether the policy is in force is not known: %s", apierror.OneLine(apierror.Plain(err)))
		return
	}
	for i := range bindings.Items {
		binding := &bindings.Items[i]
		if binding.Spec.PolicyName != policy.Name {
			continue
		}
		if match := binding.Spec.MatchResources; match != nil && !coverage.Selects(match.NamespaceSelector, namespaceLabels) {
			continue
		}
		if c.since.Before(&binding.CreationTimestamp) {
			c.since = binding.CreationTimestamp
		}
		explainParameter(ctx, client, policy, binding, c, e)
		return
	}
	e.add("binding", "the policy has no binding for this namespace, so it does nothing")
	c.broken = fmt.Sprintf("the policy %s has no binding, so it does nothing; helm upgrade restores the binding of the chart.", policy.Name)
}

// explainParameter prints the InjectionTemplate from which the policy injects brokers.
func explainParameter(ctx context.Context, client kubernetes.Interface, policy *admissionregistrationv1.MutatingAdmissionPolicy, binding *admissionregistrationv1.MutatingAdmissionPolicyBinding, c *calling, e *explanation) {
	ref := binding.Spec.ParamRef
	if ref == nil || ref.Name == "" {
		e.add("binding", "%s names no InjectionTemplate, expected the InjectionTemplate of the operator", binding.Name)
		return
	}
	e.add("binding", "%s takes the InjectionTemplate %s", binding.Name, ref.Name)
	// Without the template, the policy fails if parameterNotFoundAction is Deny. Otherwise it is
	// skipped.
	fails := failure(policy.Spec.FailurePolicy)
	if ref.ParameterNotFoundAction == nil || *ref.ParameterNotFoundAction != admissionregistrationv1.DenyAction {
		fails = admissionregistrationv1.Ignore
	}
	image, stamp, err := installation.ReadTemplate(ctx, client, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		e.add("template", "the InjectionTemplate %s is missing; the operator writes it", ref.Name)
		c.broken = fmt.Sprintf("the InjectionTemplate %s is missing; the operator writes it while it runs, and its log says why it does not; %s", ref.Name, until(fails))
	case err != nil:
		e.add("template", "whether the InjectionTemplate is there is not known: %s", apierror.OneLine(apierror.Plain(err)))
	default:
		e.add("template", "image %s, stamp %s", image, stamp)
	}
}
