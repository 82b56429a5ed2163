// SPDX-License-Identifier: Apache-2.0

// Package cluster tells the key gateway who asks and what they may do, by what Kubernetes knows
// and the operator has signed, and not by what the broker says.
//
// Who asks is the pod that the API server finds a token bound to. What it may do is in the signed
// set of profiles of the pod's namespace, as the broker of this pod has to serve it.
package cluster
