// SPDX-License-Identifier: Apache-2.0

// Package contract is what the parts of this project agree on about a broker
// that the operator injects into a pod: the reserved names in the pod, the
// annotations, the flags of the broker's program, the paths in the containers, the
// status port, and the namespaces that are left out.
//
// The webhook writes a pod by this contract, the broker is started by it, and the
// controllers and the kubectl plugin read a pod by it. A value that two of them
// need is a constant here and nowhere else. The policies of the Helm chart, which
// cannot import a package, repeat the values that they need; their tests compare
// the pods that they make with those of the webhook.
//
// The package imports nothing but the standard library, since the broker uses it
// and knows nothing of Kubernetes. Package api/injected applies it to the types of
// Kubernetes.
package contract
