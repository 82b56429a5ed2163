// SPDX-License-Identifier: Apache-2.0

// Package validation decides about CryptoProfiles and ClusterCryptoProfiles at
// admission.
//
// It refuses a profile that no broker would serve, with all problems in one
// message and the path of the field in each. It refuses a change that makes what a
// namespace is served weaker, unless an annotation allows exactly that change and
// its author has the verb weaken on the object. It admits with a warning a
// profile that is valid and will not be served, because its name belongs to another
// object or because the set has no room, and the change or the deletion of a profile
// that pods use, if it takes something from their calls.
//
// It decides about KeyProviders and ClusterKeyProviders, too: it refuses one that nothing
// could open, and logs who changed what. It warns of a profile whose keys are of a provider
// that does not exist or is not for the profile, because resources come in any order.
//
// It compiles KeyAccessPolicies, and checks KeyAccessPeers, as a key access service does, and refuses what
// the service would not accept.
//
// It writes nothing. It reads its request, a cache, and the API server's answers
// about the right to weaken and about key providers. Where it cannot find out whether a change makes a
// profile weaker, it refuses the change.
package validation
