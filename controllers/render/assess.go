// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// Assessment is what a status says about the strength and the FIPS status of a profile.
// The assessment of an invalid profile has its problems only.
type Assessment struct {
	// Problems are what [Validate] returns.
	Problems   field.ErrorList
	Strength   *int32
	Weakest    string
	FIPS       string
	Operations []v1alpha1.OperationStatus
}

// Assess judges a profile as the broker's compiler does. objectName is the
// resource's metadata.name.
func Assess(objectName string, spec *v1alpha1.ProfileSpec) Assessment {
	set, errs := compileSpec(objectName, spec)
	problems := slices.Concat(errs, validateRollout(spec.Rollout))
	if set == nil || len(errs) > 0 {
		return Assessment{Problems: problems}
	}
	compiled, ok := set.Lookup(Name(objectName, spec))
	if !ok {
		return Assessment{Problems: problems}
	}
	strength := compiled.Strength()
	assessment := Assessment{Problems: problems, Strength: new(int32(strength.Bits)), Weakest: strength.Limit}
	approved := 0
	for _, operation := range compiled.Assessments() {
		fips := v1alpha1.FIPSNotApproved
		if operation.FIPS.Approved() {
			fips = v1alpha1.FIPSApproved
			approved++
		}
		assessment.Operations = append(assessment.Operations, v1alpha1.OperationStatus{
			Name:       operation.Operation,
			Algorithm:  operation.Algorithm,
			Strength:   int32(operation.Strength.Bits),
			Weakest:    operation.Strength.Limit,
			FIPS:       fips,
			FIPSReason: operation.FIPS.Reason,
		})
	}
	switch approved {
	case len(assessment.Operations):
		assessment.FIPS = v1alpha1.FIPSApproved
	case 0:
		assessment.FIPS = v1alpha1.FIPSNotApproved
	default:
		assessment.FIPS = v1alpha1.FIPSPartly
	}
	return assessment
}
