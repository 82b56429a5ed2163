// SPDX-License-Identifier: Apache-2.0

// Package accesssource has the policies and peers of a key access service that KeyAccessPolicies and
// KeyAccessPeers of a namespace describe.
//
// While one policy is wrong, no change of policies takes effect: the last good set stays in use. So a
// policy that denies is never missing while the others are in use. A service that has no good set yet
// releases nothing. The same holds for peers, but a service works without peers.
package accesssource
