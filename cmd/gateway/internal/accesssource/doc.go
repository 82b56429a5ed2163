// SPDX-License-Identifier: Apache-2.0

// Package accesssource makes the policies and peers of a key access service from the
// KeyAccessPolicies and KeyAccessPeers of a namespace.
//
// While one policy is wrong, no change of policies takes effect: the last good set stays in use. So a
// policy that denies is never missing while the others are in use. A service that has no good set yet
// releases nothing. The same holds for peers, but a service works without peers.
package accesssource
