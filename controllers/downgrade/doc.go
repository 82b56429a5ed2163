// SPDX-License-Identifier: Apache-2.0

// Package downgrade finds out whether a change makes a profile weaker, and says
// what becomes of it.
//
// What counts is the profile that brokers of a namespace serve under a name, old
// against new, whichever object the new one comes from: so a profile that is
// deleted and made again, or that gives way to another of its name, is compared
// like one that is edited. What a namespace served is its State: the set in its
// ConfigMap and, in an annotation beside it, the profiles that are no longer in
// the set. A name that a namespace never served has nothing to be weaker than.
//
// Compare is the comparison of two profiles. Judge applies it to all that is to
// be served in a namespace: a change that is weaker is withheld, which means
// that the old profile goes on being served, unless the annotation
// cryptobroker.io/allow-weaker of the object that the new one comes from has the
// digest of exactly this change (see Change). Whether somebody may write that
// annotation is decided at admission; here it is taken for what it says.
//
// Everything here is pure.
package downgrade
