// SPDX-License-Identifier: Apache-2.0

// Package validation decides about CryptoProfiles and ClusterCryptoProfiles at
// admission.
//
// It refuses a profile that no broker would serve, with all problems in one message and the path
// of the field in each. It refuses a change that makes the profiles of a namespace weaker, unless
// an annotation allows exactly that change and its author has the verb weaken on the object. It
// admits with a warning a valid profile that will not be served, because its name belongs to
// another object or because the set has no room. It also warns of the change or the deletion of a
// profile that pods use, if their calls would lose something.
//
// It decides about KeyProviders and ClusterKeyProviders, too. It refuses a provider that cannot
// be opened, and logs who changed what. If a profile has keys of a provider that does not exist
// or does not allow the profile, it only warns, because resources may be created in any order.
//
// It compiles KeyAccessPolicies, and checks KeyAccessPeers, as a key access service does, and refuses what
// the service would not accept.
//
// It writes nothing. It reads its request, a cache, and the API server's answers
// about the right to weaken and about key providers. Where it cannot find out whether a change makes a
// profile weaker, it refuses the change.
package validation
