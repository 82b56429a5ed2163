// SPDX-License-Identifier: Apache-2.0

// Package extensions has what a profile allows in two extensions of certificates (RFC 5280): the
// subject alternative names, and the CRL distribution points.
//
// A profile file has a rule for each, with patterns: [SubjectAltNames] and [CRLDistributionPoints].
// Check finds what is wrong with a rule. Policy makes the policy of a rule without problems. Policies
// never change and are safe for concurrent use. They do not read certificates: package engine asks
// them about one name at a time.
package extensions
