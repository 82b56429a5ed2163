// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// profileValidator refuses profiles that a broker would not serve. It asks the broker's own
// compiler, and lists all problems in one message with the path of each field. It admits a valid
// profile whose name belongs to another object with a warning, because the other object may be
// deleted later. Until then, the condition Accepted says the same.
//
// It does not validate objects that are being deleted or whose spec does not change: a user who
// removes a finalizer or sets a label need not repair an object that an older operator admitted.
// It admits a deletion, with a warning where pods use the profile.
type profileValidator[T client.Object] struct {
	kind string
	// conflicts returns a sentence for each reason why the object or another object will have no
	// effect. before is nil for a new object.
	conflicts func(ctx context.Context, before, after T) ([]string, error)
	// keys returns a sentence for each provider of the profile's keys that it cannot
	// use.
	keys func(context.Context, T) []string
	// status returns the status of the object.
	status func(T) *v1alpha1.ProfileStatus
}

// newCryptoProfileValidator returns the validator of CryptoProfiles. It reads
// other profiles and namespaces to find conflicts, and key providers.
func newCryptoProfileValidator(reader client.Reader, keys *keyProviders) *profileValidator[*v1alpha1.CryptoProfile] {
	conflicts := &conflicts{reader: reader}
	return &profileValidator[*v1alpha1.CryptoProfile]{
		kind:      "CryptoProfile",
		conflicts: conflicts.ofNamespaced,
		keys:      keys.ofNamespaced,
		status:    func(p *v1alpha1.CryptoProfile) *v1alpha1.ProfileStatus { return &p.Status },
	}
}

// newClusterCryptoProfileValidator returns the validator of
// ClusterCryptoProfiles. It reads other profiles and namespaces to find
// conflicts, and key providers.
func newClusterCryptoProfileValidator(reader client.Reader, keys *keyProviders) *profileValidator[*v1alpha1.ClusterCryptoProfile] {
	conflicts := &conflicts{reader: reader}
	return &profileValidator[*v1alpha1.ClusterCryptoProfile]{
		kind:      "ClusterCryptoProfile",
		conflicts: conflicts.ofCluster,
		keys:      keys.ofCluster,
		status:    func(p *v1alpha1.ClusterCryptoProfile) *v1alpha1.ProfileStatus { return &p.Status.ProfileStatus },
	}
}

var (
	_ admission.Validator[*v1alpha1.CryptoProfile]        = &profileValidator[*v1alpha1.CryptoProfile]{}
	_ admission.Validator[*v1alpha1.ClusterCryptoProfile] = &profileValidator[*v1alpha1.ClusterCryptoProfile]{}
)

// ValidateCreate implements admission.Validator.
func (v *profileValidator[T]) ValidateCreate(ctx context.Context, object T) (admission.Warnings, error) {
	var none T
	return v.judge(ctx, none, object)
}

func (v *profileValidator[T]) judge(ctx context.Context, before, object T) (admission.Warnings, error) {
	spec, selector := specOf(object)
	problems := append(render.Validate(object.GetName(), spec), render.ValidateSelector(selector)...)
	if len(problems) > 0 {
		kind := schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v.kind}
		return nil, apierrors.NewInvalid(kind, object.GetName(), firstProblems(problems))
	}
	warnings := append(render.Warnings(object.GetName(), spec), v.keys(ctx, object)...)
	conflicts, err := v.conflicts(ctx, before, object)
	if err != nil {
		log.FromContext(ctx).Error(err, "the webhook could not check whether a profile conflicts with others")
		return append(warnings, "the webhook could not check whether the profile conflicts with another one; the condition Accepted will say so"), nil
	}
	return append(warnings, conflicts...), nil
}

// maxFields is the maximum number of fields of a profile that one refusal names.
const maxFields = 10

// firstProblems returns the first problems, and a sentence with the number of the others.
func firstProblems(found field.ErrorList) field.ErrorList {
	more := len(found) - maxFields
	if more <= 0 {
		return found
	}
	rest := field.Invalid(field.NewPath("spec"), field.OmitValueType{}, fmt.Sprintf("%d more problems like these", more))
	return append(found[:maxFields:maxFields], rest)
}

// ValidateUpdate implements admission.Validator.
func (v *profileValidator[T]) ValidateUpdate(ctx context.Context, before, after T) (admission.Warnings, error) {
	if !after.GetDeletionTimestamp().IsZero() || sameSpec(before, after) {
		return nil, nil
	}
	warnings, err := v.judge(ctx, before, after)
	if err != nil {
		return nil, err
	}
	old, _ := specOf(before)
	spec, _ := specOf(after)
	return append(warnings, lost(after.GetNamespace(), after.GetName(), old, spec, v.status(before))...), nil
}

// ValidateDelete implements admission.Validator. It admits every deletion, with a warning
// where pods use the profile.
func (v *profileValidator[T]) ValidateDelete(_ context.Context, object T) (admission.Warnings, error) {
	if !object.GetDeletionTimestamp().IsZero() {
		return nil, nil
	}
	return inUse(object.GetNamespace(), v.status(object)), nil
}
