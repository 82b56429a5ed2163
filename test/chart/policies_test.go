// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// oldest is the oldest version of Kubernetes that the chart supports.
var oldest = version.MajorMinor(1, 30)

var policyNames = []string{release + "-broker-exec", release + "-broker-pods", release + "-has-broker-annotated", release + "-has-broker-labelled", release + "-injected-annotated", release + "-injected-labelled", release + "-named-containers", release + "-operator-objects", release + "-pod-bindings", release + "-pod-status", release + "-profiles-configmap"}

// hintNames are the policies that only warn.
var hintNames = []string{release + "-hints-pods", release + "-hints-workloads", release + "-hints-jobs", release + "-hints-cronjobs"}

func TestExpressionsCompileOnTheOldestKubernetes(t *testing.T) {
	environmentSet := environment.MustBaseEnvSet(oldest)
	objects := renderChart(t)

	for _, name := range slices.Concat(policyNames, hintNames) {
		policy := find[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy", name)
		compiler, err := cel.NewCompositedCompiler(environmentSet)
		if err != nil {
			t.Fatal(err)
		}
		compile := func(what string, accessor cel.ExpressionAccessor) {
			if result := compiler.CompileCELExpression(accessor, cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}, environment.NewExpressions); result.Error != nil {
				t.Errorf("%s: %s: %v in\n%s", name, what, result.Error, accessor.GetExpression())
			}
		}
		for _, variable := range policy.Spec.Variables {
			accessor := &validating.Variable{Name: variable.Name, Expression: variable.Expression}
			if result := compiler.CompileAndStoreVariable(accessor, cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}, environment.NewExpressions); result.Error != nil {
				t.Errorf("%s: variable %s: %v", name, variable.Name, result.Error)
			}
		}
		for i := range policy.Spec.MatchConditions {
			compile("match condition", (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
		}
		for _, validation := range policy.Spec.Validations {
			compile("validation", &validating.ValidationCondition{Expression: validation.Expression})
			if validation.MessageExpression != "" {
				compile("message", &validating.MessageExpressionCondition{MessageExpression: validation.MessageExpression})
			}
		}
	}

	compiler := cel.NewCompiler(environmentSet)
	var conditions []admissionv1.MatchCondition
	for _, webhook := range find[admissionv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration", release).Webhooks {
		conditions = append(conditions, webhook.MatchConditions...)
	}
	for _, webhook := range find[admissionv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", release).Webhooks {
		conditions = append(conditions, webhook.MatchConditions...)
	}
	if len(conditions) != 16 {
		t.Errorf("found %d match conditions of webhooks, expected three for each entry that injects, and for each kind that is validated one, and two for what goes", len(conditions))
	}
	for i := range conditions {
		accessor := (*matchconditions.MatchCondition)(&conditions[i])
		if result := compiler.CompileCELExpression(accessor, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions); result.Error != nil {
			t.Errorf("match condition %s: %v", conditions[i].Name, result.Error)
		}
	}
}

// Kubelets write the status of each pod, and the operator writes the status of each pod whose profiles change. For each list of
// expressions that the API server evaluates it copies the pod twice: a condition is one list, validations are three.
func TestOnePolicyEvaluatesOneConditionForAStatusOfAPodThatBreaksNoRule(t *testing.T) {
	objects := renderChart(t)
	var forStatuses []string
	for _, name := range slices.Concat(policyNames, hintNames) {
		policy := find[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy", name)
		if !slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
			return slices.Contains(r.Resources, "pods/status")
		}) {
			continue
		}
		forStatuses = append(forStatuses, name)
		if len(policy.Spec.MatchConditions) != 1 {
			t.Fatalf("%s: found %d match conditions, expected one", name, len(policy.Spec.MatchConditions))
		}
		condition := inOneLine(policy.Spec.MatchConditions[0].Expression)
		for _, validation := range policy.Spec.Validations {
			who, rule, ok := strings.Cut(inOneLine(validation.Expression), ") || (")
			who = strings.TrimPrefix(who, "!(")
			if rules := strings.Index(condition, "("+who+" && !( "); !ok || rules < 0 || !strings.Contains(condition[rules:], "("+rule) {
				t.Errorf("%s: the match condition\n%s\nhas no rule (%s for\n%s", name, condition, rule, who)
			}
		}
	}
	if want := []string{release + "-pod-status"}; !slices.Equal(forStatuses, want) {
		t.Errorf("found the policies %q for statuses of pods, expected %q", forStatuses, want)
	}
}

func inOneLine(expression string) string { return strings.Join(strings.Fields(expression), " ") }

func TestEveryPolicyIsBoundAndDenies(t *testing.T) {
	objects := renderChart(t)
	policies := 0
	for _, object := range objects {
		if object.GetKind() == "ValidatingAdmissionPolicy" {
			policies++
		}
	}
	if want := len(policyNames) + len(hintNames); policies != want {
		t.Errorf("found %d policies, expected %d", policies, want)
	}
	for _, name := range hintNames {
		policy := find[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy", name)
		binding := find[admissionv1.ValidatingAdmissionPolicyBinding](t, objects, "ValidatingAdmissionPolicyBinding", name)
		if *policy.Spec.FailurePolicy != admissionv1.Ignore || binding.Spec.PolicyName != name ||
			len(binding.Spec.ValidationActions) != 1 || binding.Spec.ValidationActions[0] != admissionv1.Warn {
			t.Errorf("%s: found the failure policy %s and the binding %+v, expected it to warn at most", name, *policy.Spec.FailurePolicy, binding.Spec)
		}
	}
	for _, name := range policyNames {
		policy := find[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy", name)
		binding := find[admissionv1.ValidatingAdmissionPolicyBinding](t, objects, "ValidatingAdmissionPolicyBinding", name)
		want := admissionv1.Fail
		if policy.Spec.ParamKind != nil { // the parameter may be missing for a while, and the policy would then fail for every pod
			want = admissionv1.Ignore
		}
		if *policy.Spec.FailurePolicy != want {
			t.Errorf("%s: found the failure policy %s, expected %s", name, *policy.Spec.FailurePolicy, want)
		}
		if binding.Spec.PolicyName != name || len(binding.Spec.ValidationActions) != 1 || binding.Spec.ValidationActions[0] != admissionv1.Deny ||
			binding.Spec.MatchResources != nil || (binding.Spec.ParamRef != nil) != (policy.Spec.ParamKind != nil) {
			t.Errorf("%s: found the binding %+v, expected it to deny everywhere", name, binding.Spec)
		}
		for _, validation := range policy.Spec.Validations {
			if validation.Message == "" && validation.MessageExpression == "" {
				t.Errorf("%s: found no message for\n%s", name, validation.Expression)
			}
		}
	}
}

func TestHintsAreTheSameInBothWaysOfInjection(t *testing.T) {
	hints := func(arguments ...string) map[string]any {
		found := map[string]any{}
		for _, object := range renderChart(t, arguments...) {
			if slices.Contains(hintNames, object.GetName()) {
				found[identity(object)] = object.Object
			}
		}
		return found
	}
	byWebhook := hints()
	if want := 2 * len(hintNames); len(byWebhook) != want {
		t.Errorf("found %d policies and bindings, expected %d", len(byWebhook), want)
	}
	if diff := cmp.Diff(byWebhook, hints("--set", "injection.mode=policy")); diff != "" {
		t.Errorf("(-webhook +policy):\n%s", diff)
	}
}

func TestPoliciesTrustTheAccountThatTheOperatorRunsAs(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"by default":           {nil, "system:serviceaccount:crypto-broker-system:crypto-broker-operator"},
		"with a name":          {[]string{"--set", "serviceAccount.name=trusted"}, "system:serviceaccount:crypto-broker-system:trusted"},
		"with one that exists": {[]string{"--set", "serviceAccount.create=false,serviceAccount.name=mine"}, "system:serviceaccount:crypto-broker-system:mine"},
		"in another namespace": {[]string{"--namespace", "other"}, "system:serviceaccount:other:crypto-broker-operator"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := renderChart(t, test.arguments...)
			for _, policy := range policyNames {
				if slices.Contains([]string{"-broker-exec", "-has-broker-annotated", "-has-broker-labelled", "-injected-annotated", "-injected-labelled", "-named-containers", "-pod-bindings"}, strings.TrimPrefix(policy, release)) {
					continue // the policy names no account
				}
				found := string(mustJSON(t, find[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy", policy)))
				others := strings.ReplaceAll(found, "'"+test.want+"'", "")
				if others == found || strings.Contains(others, "system:serviceaccount:") {
					t.Errorf("%s trusts another account than %s:\n%s", policy, test.want, found)
				}
			}
		})
	}
}
