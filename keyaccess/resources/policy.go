// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
)

// Policy compiles a policy. Each problem has the field, and line and column in its expression or module. modules compiles
// modules in Rego.
func Policy(object *v1alpha1.KeyAccessPolicy, modules accesspolicy.CompileModule) (*accesspolicy.Policy, field.ErrorList) {
	policy, mistakes := accesspolicy.Compile(object.Name, accesspolicy.Source{
		AppliesTo: string(object.Spec.AppliesTo), Deny: rules(object.Spec.Deny), Allow: rules(object.Spec.Allow), Rego: object.Spec.Rego,
	}, modules)
	var problems field.ErrorList
	for _, mistake := range mistakes {
		at := field.NewPath("spec")
		switch mistake.List {
		case "":
		case "appliesTo", "rego":
			at = at.Child(mistake.List)
		default:
			at = at.Child(mistake.List).Index(mistake.Index).Child("when")
		}
		problems = append(problems, field.Invalid(at, field.OmitValueType{}, mistake.Err.Error()))
	}
	return policy, problems
}

func rules(from []v1alpha1.KeyAccessRule) []accesspolicy.SourceRule {
	to := make([]accesspolicy.SourceRule, len(from))
	for i, rule := range from {
		to[i] = accesspolicy.SourceRule{Name: rule.Name, When: string(rule.When)}
	}
	return to
}
