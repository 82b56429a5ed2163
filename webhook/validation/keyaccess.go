// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/resources"
)

// keyAccessValidator refuses policies and peers that a key access service would not accept. It reads nothing else.
type keyAccessValidator[T client.Object] struct {
	kind string
	// namespace is the one of the key access service.
	namespace string
	spec      func(T) any
	validate  func(T) field.ErrorList
}

func newKeyAccessPolicyValidator(namespace string, rego bool) *keyAccessValidator[*v1alpha1.KeyAccessPolicy] {
	return &keyAccessValidator[*v1alpha1.KeyAccessPolicy]{
		kind: "KeyAccessPolicy", namespace: namespace,
		spec: func(p *v1alpha1.KeyAccessPolicy) any { return p.Spec },
		validate: func(p *v1alpha1.KeyAccessPolicy) field.ErrorList {
			if rego && p.Spec.Rego != "" && p.Namespace != namespace {
				// Modules that take long to compile are for those to judge who have the keys.
				return field.ErrorList{field.Forbidden(field.NewPath("spec", "rego"), fmt.Sprintf("found a module in Rego outside of the namespace %q of the key access service", namespace))}
			}
			_, problems := resources.Policy(p, rego)
			return problems
		},
	}
}

func newKeyAccessPeerValidator(namespace string) *keyAccessValidator[*v1alpha1.KeyAccessPeer] {
	return &keyAccessValidator[*v1alpha1.KeyAccessPeer]{
		kind: "KeyAccessPeer", namespace: namespace,
		spec: func(p *v1alpha1.KeyAccessPeer) any { return p.Spec },
		validate: func(p *v1alpha1.KeyAccessPeer) field.ErrorList {
			_, problems := resources.Peer(p, nil)
			return problems
		},
	}
}

var (
	_ admission.Validator[*v1alpha1.KeyAccessPolicy] = &keyAccessValidator[*v1alpha1.KeyAccessPolicy]{}
	_ admission.Validator[*v1alpha1.KeyAccessPeer]   = &keyAccessValidator[*v1alpha1.KeyAccessPeer]{}
)

// ValidateCreate implements admission.Validator.
func (v *keyAccessValidator[T]) ValidateCreate(_ context.Context, object T) (admission.Warnings, error) {
	if problems := v.validate(object); len(problems) > 0 {
		kind := schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v.kind}
		return nil, apierrors.NewInvalid(kind, object.GetName(), firstProblems(problems))
	}
	if object.GetNamespace() != v.namespace {
		return admission.Warnings{fmt.Sprintf("the key access service of the chart has objects of the kind %s of the namespace %q only", v.kind, v.namespace)}, nil
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (v *keyAccessValidator[T]) ValidateUpdate(ctx context.Context, before, after T) (admission.Warnings, error) {
	if !after.GetDeletionTimestamp().IsZero() || equality.Semantic.DeepEqual(v.spec(before), v.spec(after)) {
		return nil, nil
	}
	return v.ValidateCreate(ctx, after)
}

// ValidateDelete implements admission.Validator. The webhook is not called for deletions.
func (v *keyAccessValidator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) {
	return nil, nil
}
