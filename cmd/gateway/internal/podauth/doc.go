// SPDX-License-Identifier: Apache-2.0

// Package podauth authenticates and authorizes requests to the key gateway, by the objects of
// Kubernetes and by sets that the operator has signed. It does not trust the broker.
//
// The caller is the pod to which the token is bound, by a review of the API server. The signed
// set of profiles of the pod's namespace says what the pod may do.
package podauth
