// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the version v1alpha1 of the API group cryptobroker.io:
// CryptoProfile and ClusterCryptoProfile, the policies by which applications
// may use cryptography, KeyProvider and ClusterKeyProvider, the key managers that
// profiles may name keys of, KeyAccessPolicy and KeyAccessPeer, who may have data keys
// and which other services have some, InjectionTemplate, and the Kubernetes names that the
// programs of this project share.
//
// A profile has the same content in a resource and in a profile file. The
// fields of a resource are the fields of the file in camelCase. Package
// controllers/render converts them. The types, enums, bounds and CEL rules of
// this package check what a schema can check. The compiler of the broker checks
// the rest; the validating webhook and the reconciler call it. The types have
// no behaviour.
//
// +kubebuilder:object:generate=true
// +groupName=cryptobroker.io
package v1alpha1
