// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the version v1alpha1 of the API group cryptobroker.io:
// CryptoProfile and ClusterCryptoProfile, the policies by which applications
// may use cryptography, and the Kubernetes names that the programs of this
// project agree on.
//
// A profile says the same in a resource and in a profile file. The fields of a
// resource are those of the file in camelCase; package controllers/render
// translates. What a schema can say is said here, by types, enums, bounds and
// CEL rules; what it can't is said by the broker's own compiler, which the
// validating webhook and the reconciler call. The types have no behaviour.
//
// +kubebuilder:object:generate=true
// +groupName=cryptobroker.io
package v1alpha1
