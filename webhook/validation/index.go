// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// profileNameIndex is the index of profiles by the name that applications use. With it,
// the cost of a request grows with the profiles of one name and not with all profiles.
const profileNameIndex = "profileName"

// Index adds the index that the handlers need to the cache, for both kinds. It has to be
// called before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range []client.Object{&v1alpha1.CryptoProfile{}, &v1alpha1.ClusterCryptoProfile{}} {
		if err := indexer.IndexField(ctx, kind, profileNameIndex, profileName); err != nil {
			return err
		}
	}
	return nil
}

// profileName returns the one value that a profile has in the index.
func profileName(object client.Object) []string {
	if spec, _ := specOf(object); spec != nil {
		return []string{render.Name(object.GetName(), spec)}
	}
	return nil
}

// specOf returns what a CryptoProfile or a ClusterCryptoProfile specifies: the profile, and the
// selector of namespaces, which a CryptoProfile does not have.
func specOf(object client.Object) (*v1alpha1.ProfileSpec, *metav1.LabelSelector) {
	switch p := object.(type) {
	case *v1alpha1.CryptoProfile:
		return &p.Spec, nil
	case *v1alpha1.ClusterCryptoProfile:
		return &p.Spec.ProfileSpec, p.Spec.NamespaceSelector
	}
	return nil, nil
}

// sameSpec reports whether two objects specify the same.
func sameSpec(a, b client.Object) bool {
	spec, selector := specOf(a)
	other, its := specOf(b)
	return equality.Semantic.DeepEqual(spec, other) && equality.Semantic.DeepEqual(selector, its)
}
