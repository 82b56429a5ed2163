// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/coverage"
)

// InstalledPolicies are the ValidatingAdmissionPolicies of an installation, without the name
// of the release in front, with the action of their bindings.
var InstalledPolicies = map[string]admissionregistrationv1.ValidationAction{
	"broker-exec":          admissionregistrationv1.Deny,
	"broker-pods":          admissionregistrationv1.Deny,
	"has-broker-annotated": admissionregistrationv1.Deny,
	"has-broker-labelled":  admissionregistrationv1.Deny,
	"hints-cronjobs":       admissionregistrationv1.Warn,
	"hints-jobs":           admissionregistrationv1.Warn,
	"hints-pods":           admissionregistrationv1.Warn,
	"hints-workloads":      admissionregistrationv1.Warn,
	"injected-annotated":   admissionregistrationv1.Deny,
	"injected-labelled":    admissionregistrationv1.Deny,
	"named-containers":     admissionregistrationv1.Deny,
	"operator-objects":     admissionregistrationv1.Deny,
	"pod-bindings":         admissionregistrationv1.Deny,
	"pod-status":           admissionregistrationv1.Deny,
	"profiles-configmap":   admissionregistrationv1.Deny,
}

// webhookOnly are the policies that are installed only where the webhook injects.
var webhookOnly = []string{"has-broker-annotated", "has-broker-labelled", "named-containers"}

// policies checks that the admission policies of the chart are installed and bound.
func (c *Checker) policies(ctx context.Context) (State, string) {
	const what = "whether the admission policies are installed"
	objects := c.Client.AdmissionregistrationV1()
	policies, err := objects.ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return cannotTell(what, err)
	}
	bindings, err := objects.ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return cannotTell(what, err)
	}
	injecting, err := coverage.InjectingPolicies(ctx, c.Client)
	if err != nil && !apierrors.IsNotFound(err) {
		return cannotTell(what, err)
	}
	var missing, unbound []string
	expected := len(injecting)
	for name, action := range InstalledPolicies {
		if len(injecting) > 0 && slices.Contains(webhookOnly, name) {
			continue
		}
		expected++
		whole := c.operator.FullName() + "-" + name
		if !slices.ContainsFunc(policies.Items, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == whole }) {
			missing = append(missing, whole)
			continue
		}
		if !slices.ContainsFunc(bindings.Items, func(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == whole && slices.Contains(b.Spec.ValidationActions, action)
		}) {
			unbound = append(unbound, fmt.Sprintf("%s (%s)", whole, action))
		}
	}
	var a answer
	if len(missing) > 0 {
		slices.Sort(missing)
		a.add(Warning, "the policies %s are not installed: helm upgrade installs them, unless a value of the chart leaves them out", strings.Join(missing, ", "))
	}
	if len(unbound) > 0 {
		slices.Sort(unbound)
		a.add(Failed, "the policies %s have no binding with the action in brackets, so they do nothing: helm upgrade restores the bindings", strings.Join(unbound, ", "))
	}
	if len(injecting) > 0 {
		c.injectingPolicies(ctx, injecting, &a)
	}
	if len(a.found) == 0 {
		a.add(OK, "%d policies are installed and bound", expected)
	}
	return a.state, strings.Join(a.found, "; ")
}

// injectingPolicies checks that the policies that inject are bound.
func (c *Checker) injectingPolicies(ctx context.Context, injecting []*admissionregistrationv1.MutatingAdmissionPolicy, a *answer) {
	bindings, err := c.Client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		a.add(Skipped, "cannot tell whether the policies that inject are bound: %s", apierror.OneLine(apierror.Plain(err)))
		return
	}
	for _, policy := range injecting {
		if !slices.ContainsFunc(bindings.Items, func(b admissionregistrationv1.MutatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == policy.Name
		}) {
			a.add(Failed, "the policy %s, which injects, has no binding, so it does nothing: helm upgrade restores the binding", policy.Name)
		}
	}
}
