// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// maxProviders is the maximum number of providers of one profile that are looked up. Each costs
// up to two reads.
const maxProviders = 8

// keyProviders finds the key provider with a name in a namespace: the ClusterKeyProvider if it
// selects the namespace, or else the KeyProvider.
type keyProviders struct {
	// live reads from the API server. namespaces reads namespaces, from a cache.
	live, namespaces client.Reader
	// operatorNamespace never gets profiles, as the namespaces of Kubernetes.
	operatorNamespace string
}

// ofNamespaced returns a sentence for each provider of a profile's keys that does not exist or
// does not allow the profile.
func (k *keyProviders) ofNamespaced(ctx context.Context, p *v1alpha1.CryptoProfile) []string {
	return k.each(ctx, &p.Spec, func(name string) (string, error) {
		cluster, err := k.selecting(ctx, name, p.Namespace)
		if err != nil {
			return "", err
		}
		if cluster != nil {
			return notFor(fmt.Sprintf("ClusterKeyProvider %q", name), &cluster.Spec.KeyProviderSpec, p.Name, &p.Spec), nil
		}
		var own v1alpha1.KeyProvider
		switch found, err := k.get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, &own); {
		case err != nil:
			return "", err
		case !found:
			return fmt.Sprintf("keys of the provider %q cannot be used: found no KeyProvider %q in the namespace and no ClusterKeyProvider that selects it", name, name), nil
		}
		return notFor(fmt.Sprintf("KeyProvider %q", name), &own.Spec, p.Name, &p.Spec), nil
	})
}

// ofCluster is ofNamespaced for a cluster profile. It does not check the namespaces, because
// there may be thousands.
func (k *keyProviders) ofCluster(ctx context.Context, p *v1alpha1.ClusterCryptoProfile) []string {
	return k.each(ctx, &p.Spec.ProfileSpec, func(name string) (string, error) {
		var cluster v1alpha1.ClusterKeyProvider
		switch found, err := k.get(ctx, client.ObjectKey{Name: name}, &cluster); {
		case err != nil:
			return "", err
		case !found:
			return fmt.Sprintf("found no ClusterKeyProvider %q: keys of this provider can only be used in namespaces with a KeyProvider of this name", name), nil
		}
		return notFor(fmt.Sprintf("ClusterKeyProvider %q", name), &cluster.Spec.KeyProviderSpec, p.Name, &p.Spec.ProfileSpec), nil
	})
}

func (k *keyProviders) each(ctx context.Context, spec *v1alpha1.ProfileSpec, problem func(name string) (string, error)) []string {
	names := render.KeyProviderNames(spec)
	var warnings []string
	for _, name := range names[:min(len(names), maxProviders)] {
		sentence, err := problem(name)
		if err != nil {
			log.FromContext(ctx).Error(err, "the webhook could not check whether a key provider exists", "provider", name)
			sentence = fmt.Sprintf("the webhook could not check whether the key provider %q exists", name)
		}
		if sentence != "" {
			warnings = append(warnings, sentence)
		}
	}
	return warnings
}

// notFor returns a sentence if a provider does not allow a profile, and otherwise an empty text.
func notFor(provider string, spec *v1alpha1.KeyProviderSpec, objectName string, p *v1alpha1.ProfileSpec) string {
	name := render.Name(objectName, p)
	if render.MayUse(spec, name) {
		return ""
	}
	return fmt.Sprintf("keys of %s cannot be used: its allowedProfiles do not have %q", provider, name)
}

// overNamespaced returns a sentence if a ClusterKeyProvider hides a KeyProvider.
func (k *keyProviders) overNamespaced(ctx context.Context, p *v1alpha1.KeyProvider) ([]string, error) {
	if contract.IsExcluded(p.Namespace, k.operatorNamespace) {
		return []string{fmt.Sprintf("the key provider is valid and will not be used: the namespace %q never gets profiles", p.Namespace)}, nil
	}
	cluster, err := k.selecting(ctx, p.Name, p.Namespace)
	if cluster == nil || err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("the key provider is valid and will not be used: the name belongs to ClusterKeyProvider %q, which selects the namespace", p.Name)}, nil
}

// underCluster returns a sentence for each KeyProvider that a ClusterKeyProvider hides.
func (k *keyProviders) underCluster(ctx context.Context, p *v1alpha1.ClusterKeyProvider) ([]string, error) {
	var same v1alpha1.KeyProviderList
	if err := k.live.List(ctx, &same, client.MatchingFields{"metadata.name": p.Name}); err != nil {
		return nil, err
	}
	var found []string
	for i := range same.Items {
		namespace := same.Items[i].Namespace
		selected, err := k.selects(ctx, p, namespace)
		if err != nil {
			return nil, err
		}
		if selected {
			found = append(found, fmt.Sprintf("KeyProvider %q of namespace %q will not be used: a ClusterKeyProvider counts before it", p.Name, namespace))
		}
	}
	if more := len(found) - maxConflicts; more > 0 {
		found = append(found[:maxConflicts], fmt.Sprintf("and %d more KeyProviders of this name will not be used", more))
	}
	return found, nil
}

// selecting returns the ClusterKeyProvider of a name if it exists and selects the namespace.
func (k *keyProviders) selecting(ctx context.Context, name, namespace string) (*v1alpha1.ClusterKeyProvider, error) {
	var cluster v1alpha1.ClusterKeyProvider
	if found, err := k.get(ctx, client.ObjectKey{Name: name}, &cluster); !found || err != nil {
		return nil, err
	}
	if selected, err := k.selects(ctx, &cluster, namespace); !selected || err != nil {
		return nil, err
	}
	return &cluster, nil
}

func (k *keyProviders) selects(ctx context.Context, p *v1alpha1.ClusterKeyProvider, name string) (bool, error) {
	var namespace corev1.Namespace
	if err := k.namespaces.Get(ctx, client.ObjectKey{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
		return false, err
	}
	return !contract.IsExcluded(name, k.operatorNamespace) && render.NamespaceSelector(p.Spec.NamespaceSelector).Matches(labels.Set(namespace.Labels)), nil
}

// get reads an object. It reports false if there is no object, or no definition of its kind.
func (k *keyProviders) get(ctx context.Context, key client.ObjectKey, object client.Object) (bool, error) {
	err := k.live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}
