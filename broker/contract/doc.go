// SPDX-License-Identifier: Apache-2.0

// Package contract has what all parts of this project know about a broker that is injected
// into a pod: the reserved names in the pod, the annotations, the flags of the broker's
// program, the paths in the containers, the status port, and the namespaces without brokers.
//
// The webhook writes pods by this contract, the broker starts by it, and the controllers and the
// kubectl plugin read pods by it. A value that two of them need is a constant here and nowhere
// else. The policies of the Helm chart cannot import a package, so they repeat the values that
// they need. Their tests compare their pods with the pods of the webhook.
//
// The package imports only the standard library, because the broker uses it and does not
// know Kubernetes. Package api/injected applies the contract to the types of Kubernetes.
package contract
