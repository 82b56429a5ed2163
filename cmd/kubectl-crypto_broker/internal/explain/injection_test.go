// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dryrun"
)

// answers is an API server with a few answers: objects by their path. Other paths are not found, and paths with nil are forbidden.
func answers(t *testing.T, objects map[string]any) kubernetes.Interface {
	t.Helper()
	status := metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		object, there := objects[r.URL.Path]
		parts := strings.Split(r.URL.Path, "/")
		switch {
		case !there:
			object = &metav1.Status{TypeMeta: status, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404, Message: "the server could not find the requested resource"}
			w.WriteHeader(http.StatusNotFound)
		case object == nil:
			verb, resource := "list", parts[len(parts)-1]
			if r.URL.Path == pathNamespace || r.URL.Path == pathTemplate {
				verb, resource = "get", parts[len(parts)-2]
			}
			object = &metav1.Status{TypeMeta: status, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: 403,
				Message: fmt.Sprintf(`%s.x.k8s.io is forbidden: User "jane" cannot %s resource %q in API group "x" at the cluster scope`, resource, verb, resource)}
			w.WriteHeader(http.StatusForbidden)
		}
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// trialOf asks a cluster and ignores its warnings.
func trialOf(client kubernetes.Interface) dryrun.Trial {
	return dryrun.Trial{Client: client, Warnings: &dryrun.Warnings{}}
}

// The paths that explain reads.
const (
	pathNamespace = "/api/v1/namespaces/shop"
	pathWebhooks  = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	pathPolicies  = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
	pathChecks    = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	pathBindings  = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
	pathTemplate  = "/apis/cryptobroker.io/v1alpha1/injectiontemplates/operator"
)

// installed is the time at which the operator was installed in these tests.
var installed = metav1.NewTime(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))

// byPolicy returns a cluster whose API server injects by policy, with changes.
func byPolicy(change func(map[string]any, *admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicyBinding)) map[string]any {
	policy := admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "inject-annotated", CreationTimestamp: installed},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ParamKind:     &admissionregistrationv1.ParamKind{APIVersion: v1alpha1.GroupVersion.String(), Kind: "InjectionTemplate"},
			FailurePolicy: new(admissionregistrationv1.Fail),
		},
	}
	binding := admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "the-binding", CreationTimestamp: installed},
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name,
			ParamRef:   &admissionregistrationv1.ParamRef{Name: "operator", ParameterNotFoundAction: new(admissionregistrationv1.DenyAction)},
		},
	}
	objects := map[string]any{
		pathNamespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		pathWebhooks:  &admissionregistrationv1.MutatingWebhookConfigurationList{},
		pathTemplate: &v1alpha1.InjectionTemplate{Spec: v1alpha1.InjectionTemplateSpec{
			Container: apiextensionsv1.JSON{Raw: []byte(`{"name":"crypto-broker","image":"broker:7"}`)}, Stamp: "1.0.0/abc",
		}},
	}
	if change != nil {
		change(objects, &policy, &binding)
	}
	other := admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "of-somebody-else"}}
	if _, set := objects[pathPolicies]; !set {
		objects[pathPolicies] = &admissionregistrationv1.MutatingAdmissionPolicyList{Items: []admissionregistrationv1.MutatingAdmissionPolicy{other, policy}}
	}
	if _, set := objects[pathBindings]; !set {
		objects[pathBindings] = &admissionregistrationv1.MutatingAdmissionPolicyBindingList{Items: []admissionregistrationv1.MutatingAdmissionPolicyBinding{binding}}
	}
	return objects
}

func TestExplainTellsHowBrokersAreInjected(t *testing.T) {
	type policy = *admissionregistrationv1.MutatingAdmissionPolicy
	type binding = *admissionregistrationv1.MutatingAdmissionPolicyBinding
	noTemplate := func(fails admissionregistrationv1.FailurePolicyType, action admissionregistrationv1.ParameterNotFoundActionType) map[string]any {
		return byPolicy(func(all map[string]any, p policy, b binding) {
			delete(all, pathTemplate)
			p.Spec.FailurePolicy, b.Spec.ParamRef.ParameterNotFoundAction = &fails, &action
		})
	}
	const missingTemplate = "A restart would not bring a broker now: the InjectionTemplate operator is missing; the operator writes it while it runs"
	later := installed.Add(time.Hour)
	tests := map[string]struct {
		objects map[string]any
		created time.Time
		says    []string
		not     string
	}{
		"a policy, binding and template": {byPolicy(nil), later, []string{
			"inject-annotated covers the namespace since 2026-11-20 09:00:00 UTC (failurePolicy Fail)",
			"the-binding takes the InjectionTemplate operator", "image broker:7, stamp 1.0.0/abc",
			"It was created at 2026-11-20 10:00:00 UTC, while the policies were incomplete, or before the annotation or the label was there. Create it again.",
		}, "webhook"},
		"a pod from before the policy": {byPolicy(nil), installed.Add(-time.Hour), []string{
			"It was created at 2026-11-20 08:00:00 UTC, before the operator was installed. Create it again.",
		}, ""},
		"a pod from before the binding": {byPolicy(func(_ map[string]any, _ policy, b binding) { b.CreationTimestamp = metav1.NewTime(later) }), installed.Add(time.Minute), []string{
			"before the operator was installed",
		}, ""},
		"no binding": {byPolicy(func(_ map[string]any, _ policy, b binding) { b.Spec.PolicyName = "another" }), later, []string{
			"the policy has no binding for this namespace, so it does nothing",
			"A restart would not bring a broker now: the policy inject-annotated has no binding, so it does nothing; helm upgrade restores the binding of the chart.",
		}, "Create it again"},
		"no template": {noTemplate(admissionregistrationv1.Fail, admissionregistrationv1.DenyAction), later, []string{
			"the InjectionTemplate operator is missing", missingTemplate, "new pods that ask for a broker are refused until then.",
		}, "get none"},
		"no template, and failures are ignored": {noTemplate(admissionregistrationv1.Ignore, admissionregistrationv1.DenyAction), later, []string{
			"(failurePolicy Ignore)", missingTemplate, "new pods that ask for a broker get none until then.",
		}, "are refused"},
		"no template, and the binding allows that": {noTemplate(admissionregistrationv1.Fail, admissionregistrationv1.AllowAction), later, []string{
			"new pods that ask for a broker get none until then.",
		}, "are refused"},
		"a binding without a template": {byPolicy(func(_ map[string]any, _ policy, b binding) { b.Spec.ParamRef = nil }), later, []string{
			"the-binding names no InjectionTemplate, expected the InjectionTemplate of the operator",
		}, ""},
		"policies that leave the namespace out": {byPolicy(func(_ map[string]any, p policy, _ binding) {
			p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
		}), later, []string{
			"the operator's policies leave out namespace shop", "The operator does not inject into this namespace: see webhook.excludedNamespaces of the chart.",
		}, ""},
		"a Kubernetes without policies": {map[string]any{
			pathNamespace: &corev1.Namespace{}, pathWebhooks: &admissionregistrationv1.MutatingWebhookConfigurationList{},
		}, later, []string{
			"this Kubernetes has no MutatingAdmissionPolicies, which come with 1.36", "The operator is not installed",
		}, ""},
		"nothing at all": {byPolicy(func(_ map[string]any, p policy, _ binding) { p.Spec.ParamKind = nil }), later, []string{
			"it is not installed: there is neither a webhook nor a policy of it", "The operator is not installed: there is neither its webhook nor its policies.",
		}, ""},
		"what injects was deleted, and what checks was not": {byPolicy(func(all map[string]any, p policy, _ binding) {
			all[pathChecks] = &admissionregistrationv1.ValidatingAdmissionPolicyList{Items: []admissionregistrationv1.ValidatingAdmissionPolicy{{
				ObjectMeta: metav1.ObjectMeta{Name: "injected-annotated"},
				Spec:       admissionregistrationv1.ValidatingAdmissionPolicySpec{ParamKind: p.Spec.ParamKind, MatchConstraints: &admissionregistrationv1.MatchResources{}},
			}}}
			p.Spec.ParamKind = nil
		}), later, []string{
			"its MutatingWebhookConfiguration or its MutatingAdmissionPolicies were deleted; its other policies refuse pods that ask for a broker\n",
			"A restart would not bring a broker now: the MutatingWebhookConfiguration or the MutatingAdmissionPolicies of the operator were deleted. Restore them: helm upgrade with the values of the release; until then, new pods that ask for a broker are refused.",
		}, "not installed"},
		"policies that may not be read": {byPolicy(func(all map[string]any, _ policy, _ binding) { all[pathPolicies] = nil }), later, []string{
			"whether the API server injects by a policy is not known: the right to list mutatingadmissionpolicies is missing (user jane)\n",
		}, "not installed"},
		"bindings that may not be read": {byPolicy(func(all map[string]any, _ policy, _ binding) { all[pathBindings] = nil }), later, []string{
			"whether the policy is in force is not known: the right to list mutatingadmissionpolicybindings is missing (user jane)\n",
		}, ""},
		"a template that may not be read": {byPolicy(func(all map[string]any, _ policy, _ binding) { all[pathTemplate] = nil }), later, []string{
			"whether the InjectionTemplate is there is not known: the right to get injectiontemplates is missing (user jane)\n",
		}, "would not bring it"},
		"webhooks that may not be read": {byPolicy(func(all map[string]any, p policy, _ binding) { all[pathWebhooks], p.Spec.ParamKind = nil, nil }), later, []string{
			"whether the operator is called is not known: the right to list mutatingwebhookconfigurations is missing (user jane)\n",
		}, "not installed"},
		"a namespace that may not be read": {byPolicy(func(all map[string]any, _ policy, _ binding) { all[pathNamespace] = nil }), later, []string{
			"whether shop has the label cryptobroker.io/injection=enabled is not known: the right to get namespaces is missing (user jane)\n", "has no broker, though it should have one.",
		}, ""},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "orders", CreationTimestamp: metav1.NewTime(test.created), Annotations: map[string]string{contract.InjectAnnotation: "true"},
			}}
			var out strings.Builder
			if fine, err := Pod(t.Context(), trialOf(answers(t, test.objects)), pod, &out); fine || err != nil {
				t.Fatal(fine, err)
			}
			for _, says := range test.says {
				if !strings.Contains(out.String(), says) {
					t.Errorf("%q is not in\n%s", says, &out)
				}
			}
			if test.not != "" && strings.Contains(out.String(), test.not) {
				t.Errorf("%q is in\n%s", test.not, &out)
			}
		})
	}
}

func TestWhatANamespaceThatMayNotBeReadSaysIsNotGuessed(t *testing.T) {
	objects := byPolicy(nil)
	objects[pathNamespace] = nil
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	for says, change := range map[string]func(){
		"Pod orders in namespace shop has no broker; whether it should have one is not known.": func() {},
		"Pod orders in namespace shop has a broker; whether a new pod would get one is not known.": func() {
			pod.Spec.InitContainers = []corev1.Container{{Name: contract.BrokerContainer, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
			pod.Status.Phase = corev1.PodSucceeded
		},
	} {
		pod.Spec, pod.Status = corev1.PodSpec{}, corev1.PodStatus{}
		change()
		var out strings.Builder
		if fine, err := Pod(t.Context(), trialOf(answers(t, objects)), pod, &out); fine || err != nil {
			t.Fatal(fine, err)
		}
		if !strings.Contains(out.String(), says) {
			t.Errorf("%q is not in\n%s", says, &out)
		}
	}
}
