// SPDX-License-Identifier: Apache-2.0

// Package profile reads, checks and compiles the crypto profiles a broker
// serves.
//
// A profile file has one of two forms, told apart by the kind of its root
// node: a list of profiles, as every released broker reads it, or a map with
// the keys FormatVersion, Settings, KMS and Profiles. Reading is strict: an
// unknown, misspelt or repeated key, a value of the wrong type and a value out
// of range are problems with file, line, column and field, and all problems of
// a file are reported at once.
//
// What a problem costs depends on where it is. Inside one profile it takes
// that profile out of service and no other. At the root of the file, or where
// the file is no YAML at all, nothing of the file is used: a reader that
// guesses what a policy means is worse than one that keeps the last good set.
//
// Compile turns a file into a Set, which never changes afterwards and is safe
// for concurrent use. Package directory follows a directory of profiles and keeps
// the last good Set.
//
// What a profile may offer is a table of sections, see Sections: each row is one
// operation, or one and its inverse, and stands in a file operation_….go with its
// fields, checks, policy, strength, FIPS verdict, warnings and version of the
// format. What is known of an algorithm is in package algorithm.
//
// The package knows nothing of Kubernetes and nothing of gRPC.
package profile
