// SPDX-License-Identifier: Apache-2.0

// Package downgrade finds out whether a change makes a profile weaker, and decides
// whether the change is served.
//
// It compares the profile that brokers of a namespace serve under a name with the new profile of
// that name, from whichever object the new profile comes. So a profile that is deleted and
// created again, or replaced by another object, is compared in the same way as a profile that is
// edited. The [State] of a namespace has the profiles that it has served: the set in its
// ConfigMap, and in an annotation the profiles that are no longer in the set. A profile with a
// name that the namespace never served cannot be weaker.
//
// [State.Judge] compares all profiles of a namespace. It withholds a change that is
// weaker: the old profile is still served, unless the annotation
// cryptobroker.io/allow-weaker on the object of the new profile has the digest of exactly
// this change (see [Change]). Admission decides whether somebody may write that
// annotation; this package does not check it again.
//
// The functions are pure: equal arguments give equal results.
package downgrade
