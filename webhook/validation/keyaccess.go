// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/resources"
)

// keyAccessValidator refuses policies and peers that a key access service would not accept.
type keyAccessValidator[T client.Object] struct {
	kind string
	// namespace is the namespace of the key access service.
	namespace string
	spec      func(T) any
	// validate returns the problems of an object. The error says why the object could not be
	// checked.
	validate func(context.Context, T) (field.ErrorList, error)
}

// CheckModule returns a sentence for each problem of a module in Rego. The error says why the
// module was not checked.
type CheckModule func(ctx context.Context, module string) (problems []string, err error)

func newKeyAccessPolicyValidator(namespace string, modules CheckModule) *keyAccessValidator[*v1alpha1.KeyAccessPolicy] {
	return &keyAccessValidator[*v1alpha1.KeyAccessPolicy]{
		kind: "KeyAccessPolicy", namespace: namespace,
		spec: func(p *v1alpha1.KeyAccessPolicy) any { return p.Spec },
		validate: func(ctx context.Context, p *v1alpha1.KeyAccessPolicy) (field.ErrorList, error) {
			if modules != nil && p.Spec.Rego != "" && p.Namespace != namespace {
				// Only the owner of the keys can decide about modules that take a long time to
				// compile.
				return field.ErrorList{field.Forbidden(field.NewPath("spec", "rego"), fmt.Sprintf("found a module in Rego outside of the namespace %q of the key access service", namespace))}, nil
			}
			return checkPolicy(ctx, p, modules)
		},
	}
}

// checkPolicy returns the problems of a policy. Its expressions are compiled here, and its module
// by another process.
func checkPolicy(ctx context.Context, p *v1alpha1.KeyAccessPolicy, modules CheckModule) (field.ErrorList, error) {
	if modules == nil {
		_, problems := resources.Policy(p, nil)
		return problems, nil
	}
	var unchecked error
	_, problems := resources.Policy(p, func(text string) (accesspolicy.Module, error) {
		found, err := modules(ctx, text)
		if err != nil {
			unchecked = err
			return accesspolicy.Module{}, err
		}
		var mistakes []error
		for _, problem := range found {
			mistakes = append(mistakes, errors.New(problem))
		}
		return accesspolicy.Module{Allow: elsewhere{}}, errors.Join(mistakes...)
	})
	if unchecked != nil {
		return nil, fmt.Errorf("spec.rego: the module was not checked, try again: %w", unchecked)
	}
	return problems, nil
}

// elsewhere is a rule of a module that another process has compiled.
type elsewhere struct{}

// Reads implements [accesspolicy.Condition].
func (elsewhere) Reads() []string { return nil }

// Evaluate implements [accesspolicy.Condition].
func (elsewhere) Evaluate(*accesspolicy.Values) (bool, error) {
	return false, errors.New("the module was compiled elsewhere")
}

func newKeyAccessPeerValidator(namespace string) *keyAccessValidator[*v1alpha1.KeyAccessPeer] {
	return &keyAccessValidator[*v1alpha1.KeyAccessPeer]{
		kind: "KeyAccessPeer", namespace: namespace,
		spec: func(p *v1alpha1.KeyAccessPeer) any { return p.Spec },
		validate: func(_ context.Context, p *v1alpha1.KeyAccessPeer) (field.ErrorList, error) {
			_, problems := resources.Peer(p, nil)
			return problems, nil
		},
	}
}

var (
	_ admission.Validator[*v1alpha1.KeyAccessPolicy] = &keyAccessValidator[*v1alpha1.KeyAccessPolicy]{}
	_ admission.Validator[*v1alpha1.KeyAccessPeer]   = &keyAccessValidator[*v1alpha1.KeyAccessPeer]{}
)

// ValidateCreate implements admission.Validator.
func (v *keyAccessValidator[T]) ValidateCreate(ctx context.Context, object T) (admission.Warnings, error) {
	problems, err := v.validate(ctx, object)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	if len(problems) > 0 {
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
