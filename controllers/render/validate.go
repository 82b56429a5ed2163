// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Validate returns all problems of a profile, as the broker's compiler finds them, with
// the field paths of the resource. objectName is the
// resource's metadata.name.
func Validate(objectName string, spec *v1alpha1.ProfileSpec) field.ErrorList {
	_, errs := compileSpec(objectName, spec)
	return append(errs, validateRollout(spec.Rollout)...)
}

// Warnings returns the warnings of the broker's compiler about a valid profile. Each is a
// sentence that begins with the field path of the resource.
func Warnings(objectName string, spec *v1alpha1.ProfileSpec) []string {
	set, errs := compileSpec(objectName, spec)
	if len(errs) > 0 {
		return nil
	}
	var warnings []string
	for _, warning := range set.Warnings() {
		warnings = append(warnings, path(warning.Field, spec.ProfileName != "").String()+": "+warning.Message)
	}
	return warnings
}

// Lost returns a phrase for each thing that a profile offers and the profile after does not
// offer. It returns none if one of them is invalid. See [profile.Compiled.Lost].
func Lost(objectName string, before, after *v1alpha1.ProfileSpec) []string {
	old, _ := compileSpec(objectName, before)
	changed, _ := compileSpec(objectName, after)
	if old == nil || changed == nil {
		return nil
	}
	offered, _ := old.Lookup(Name(objectName, before))
	next, _ := changed.Lookup(Name(objectName, after))
	if offered == nil || next == nil {
		return nil
	}
	return offered.Lost(next)
}

// compileSpec compiles a profile with the broker's compiler. The set is nil if that
// finds a problem.
func compileSpec(objectName string, spec *v1alpha1.ProfileSpec) (*profile.Set, field.ErrorList) {
	p, err := Document(objectName, spec)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("spec", "kms"), field.OmitValueType{}, err.Error())}
	}
	set, problems := profile.CompileDocument(&profile.Document{Profiles: []profile.Profile{p}})
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path(problem.Field, spec.ProfileName != ""), field.OmitValueType{}, problem.Message))
	}
	return set, errs
}

// ValidateSelector returns all problems of the selector of a ClusterCryptoProfile or
// ClusterKeyProvider. A selector that cannot be read selects no namespace.
func ValidateSelector(selector *metav1.LabelSelector) field.ErrorList {
	return validateSelector(selector, field.NewPath("spec", "namespaceSelector"))
}

// path translates the path of a field in a profile file into the path in the resource:
// "API.SignCertificate.KeyUsage[2]" is "spec.api.signCertificate.keyUsage[2]". A profile without
// spec.profileName has its name from metadata.name.
func path(inFile string, hasProfileName bool) *field.Path {
	if inFile == "Name" {
		if hasProfileName {
			return field.NewPath("spec", "profileName")
		}
		return field.NewPath("metadata", "name")
	}
	p := field.NewPath("spec")
	free := false // inside a map whose keys are the user's
	for i, element := range strings.Split(inFile, ".") {
		switch {
		case element == "":
			continue
		case free:
			p = p.Child(element)
		default:
			p = p.Child(fieldName(element))
			free = i == 1 && strings.HasPrefix(inFile, "KMS.") && (element == "Config" || element == "Cache")
		}
	}
	return p
}

// fieldName returns the name in a resource of a field of a profile file: its leading capitals become lower case, except for the
// capital that begins the next word.
func fieldName(inFile string) string {
	name, index, _ := strings.Cut(inFile, "[")
	if index != "" {
		index = "[" + index
	}
	switch name {
	case "UIDs", "GIDs":
		return strings.ToLower(name) + index
	case "SPKISHA256":
		return "spkiSHA256" + index
	case "OpenBao", "PKCS11":
		return strings.ToLower(name) + index
	case "AWSKMS":
		return "awsKMS" + index
	}
	capitals := len(name) - len(strings.TrimLeftFunc(name, unicode.IsUpper))
	if capitals > 1 && capitals < len(name) {
		capitals--
	}
	return strings.ToLower(name[:capitals]) + name[capitals:] + index
}

func validateSelector(selector *metav1.LabelSelector, at *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, at)
}

// validateRollout returns the problems of the steps of a rollout that the schema cannot find.
func validateRollout(rollout *v1alpha1.Rollout) (all field.ErrorList) {
	if rollout == nil {
		return nil
	}
	weight := int32(0)
	for i, step := range rollout.Steps {
		at := field.NewPath("spec", "rollout", "steps").Index(i)
		all = append(all, validateSelector(step.NamespaceSelector, at.Child("namespaceSelector"))...)
		if step.SetWeight != nil {
			if *step.SetWeight < weight {
				all = append(all, field.Invalid(at.Child("setWeight"), *step.SetWeight, fmt.Sprintf("an earlier step has %d, and a rollout goes only forward", weight)))
			}
			weight = max(weight, *step.SetWeight)
		}
		if p := step.Pause; p != nil && p.Duration != nil && p.Duration.Duration <= 0 {
			all = append(all, field.Invalid(at.Child("pause", "duration"), p.Duration.Duration.String(), "expected more than 0, or no duration, to wait until somebody promotes the rollout"))
		}
	}
	return all
}
