// SPDX-License-Identifier: Apache-2.0

// Package catalogue keeps the ready-made ClusterCryptoProfiles in the cluster
// that the operator was asked for. The leader applies them from its own binary,
// as soon as the webhook that validates them answers.
//
// What is the catalogue's is told by a label, and nothing else is touched: where
// somebody has made an object of the same name, it stays what it is, and an event
// on it says so.
//
// A profile of the catalogue is what its name promises. The fields that it sets
// are put back when somebody changes them, and so is the object when it is
// deleted; fields that it does not set, such as callers, may be added and stay.
// With a new version of the operator the profiles are those of that version.
//
// A profile that is no longer asked for stays, since applications may use it: an
// event says so, and who wants it gone deletes it. Without the label it is
// nobody's but its owner's.
package catalogue
