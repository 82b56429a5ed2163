// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Key providers are read from the API server and not from a cache, because they are only needed
// when a profile or a provider changes, and only the leader has a cache of providers.
//
// +kubebuilder:rbac:groups=cryptobroker.io,resources=keyproviders;clusterkeyproviders,verbs=get;list

// keyProviderValidator refuses key providers that cannot be opened. It admits with a warning a
// valid provider that has no effect, and a change of the source of keys. It also logs such a
// change with its author, because the change is neither weaker nor stronger, so the guard does
// not compare it.
type keyProviderValidator[T client.Object] struct {
	kind      string
	spec      func(T) *v1alpha1.KeyProviderSpec
	selector  func(T) *metav1.LabelSelector
	conflicts func(context.Context, T) ([]string, error)
}

func newKeyProviderValidator(found *keyProviders) *keyProviderValidator[*v1alpha1.KeyProvider] {
	return &keyProviderValidator[*v1alpha1.KeyProvider]{
		kind:      "KeyProvider",
		spec:      func(p *v1alpha1.KeyProvider) *v1alpha1.KeyProviderSpec { return &p.Spec },
		selector:  func(*v1alpha1.KeyProvider) *metav1.LabelSelector { return nil },
		conflicts: found.overNamespaced,
	}
}

func newClusterKeyProviderValidator(found *keyProviders) *keyProviderValidator[*v1alpha1.ClusterKeyProvider] {
	return &keyProviderValidator[*v1alpha1.ClusterKeyProvider]{
		kind:      "ClusterKeyProvider",
		spec:      func(p *v1alpha1.ClusterKeyProvider) *v1alpha1.KeyProviderSpec { return &p.Spec.KeyProviderSpec },
		selector:  func(p *v1alpha1.ClusterKeyProvider) *metav1.LabelSelector { return p.Spec.NamespaceSelector },
		conflicts: found.underCluster,
	}
}

var (
	_ admission.Validator[*v1alpha1.KeyProvider]        = &keyProviderValidator[*v1alpha1.KeyProvider]{}
	_ admission.Validator[*v1alpha1.ClusterKeyProvider] = &keyProviderValidator[*v1alpha1.ClusterKeyProvider]{}
)

// ValidateCreate implements admission.Validator.
func (v *keyProviderValidator[T]) ValidateCreate(ctx context.Context, object T) (admission.Warnings, error) {
	problems := append(render.ValidateKeyProvider(object.GetName(), v.spec(object)), render.ValidateSelector(v.selector(object))...)
	if len(problems) > 0 {
		kind := schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v.kind}
		return nil, apierrors.NewInvalid(kind, object.GetName(), firstProblems(problems))
	}
	found, err := v.conflicts(ctx, object)
	if err != nil {
		log.FromContext(ctx).Error(err, "the webhook could not check whether another key provider has the same name")
		return admission.Warnings{"the webhook could not check whether another key provider has the same name"}, nil
	}
	return found, nil
}

// ValidateUpdate implements admission.Validator.
func (v *keyProviderValidator[T]) ValidateUpdate(ctx context.Context, before, after T) (admission.Warnings, error) {
	old, changed := v.spec(before), v.spec(after)
	fields := changedFields(old, changed)
	if !equality.Semantic.DeepEqual(v.selector(before), v.selector(after)) {
		fields = append(fields, "namespaceSelector")
	}
	if !after.GetDeletionTimestamp().IsZero() || len(fields) == 0 {
		return nil, nil
	}
	warnings, err := v.ValidateCreate(ctx, after)
	if err != nil {
		return nil, err
	}
	if request, err := admission.RequestFromContext(ctx); err == nil && (request.DryRun == nil || !*request.DryRun) {
		log.FromContext(ctx).Info("a key provider is changed", "kind", v.kind, "namespace", after.GetNamespace(), "name", after.GetName(), "by", request.UserInfo.Username,
			"fields", fields, "endpointsBefore", old.Endpoints, "endpoints", changed.Endpoints)
	}
	fields = slices.DeleteFunc(fields, func(field string) bool { return !slices.Contains(sourceFields, field) })
	if len(fields) > 0 {
		warnings = append(warnings, fmt.Sprintf("spec.%s changed, so keys come from elsewhere: what the old keys protect can only be read if the same keys are there", strings.Join(fields, " and spec.")))
	}
	return warnings, nil
}

// ValidateDelete implements admission.Validator. The webhook is not called for deletions.
func (v *keyProviderValidator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) {
	return nil, nil
}

// sourceFields are the fields of a spec that determine the source of keys.
var sourceFields = []string{"type", "endpoints", "openbao", "awsKMS", "pkcs11"}

// changedFields returns the names of the fields of a spec that differ.
func changedFields(before, after *v1alpha1.KeyProviderSpec) []string {
	var names []string
	old, changed := reflect.ValueOf(*before), reflect.ValueOf(*after)
	for i := range old.NumField() {
		if !equality.Semantic.DeepEqual(old.Field(i).Interface(), changed.Field(i).Interface()) {
			name, _, _ := strings.Cut(old.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}
