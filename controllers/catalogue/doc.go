// SPDX-License-Identifier: Apache-2.0

// Package catalogue applies the ready-made ClusterCryptoProfiles that the flags of the operator
// name. The leader applies them from its own binary, as soon as the webhook that validates them
// answers.
//
// A label marks the profiles of the catalogue, and the reconciler changes no other objects. If
// somebody else has made an object of the same name, the object stays unchanged, and an event on
// it says so.
//
// The reconciler reverts changes of the fields that it sets, and creates a profile again
// that was deleted. Fields that it does not set, such as callers, may be added and stay.
// A new version of the operator brings its own version of the profiles.
//
// A profile that is no longer asked for stays, because applications may use it. An event
// says so, and somebody may delete it. Without the label a profile belongs to the user who
// made it.
package catalogue
