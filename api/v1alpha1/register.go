// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: "cryptobroker.io", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the types of this package in a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&CryptoProfile{}, &CryptoProfileList{},
		&ClusterCryptoProfile{}, &ClusterCryptoProfileList{},
		&InjectionTemplate{}, &InjectionTemplateList{},
		&KeyProvider{}, &KeyProviderList{},
		&ClusterKeyProvider{}, &ClusterKeyProviderList{},
		&KeyAccessPolicy{}, &KeyAccessPolicyList{},
		&KeyAccessPeer{}, &KeyAccessPeerList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
