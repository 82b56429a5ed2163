// SPDX-License-Identifier: Apache-2.0

// Package accesssource has the policies and peers of a key access service that KeyAccessPolicies and
// KeyAccessPeers of a namespace describe.
//
// While one policy is wrong, no change of policies counts: the set that was good last stays in use, so
// that a policy which was meant to deny is never missing from the others. A service that has no good
// set yet releases nothing. The same holds for peers, without which a service works.
package accesssource
