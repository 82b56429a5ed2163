// SPDX-License-Identifier: Apache-2.0

// Package profile reads, checks and compiles the crypto profiles a broker
// serves.
//
// A profile file has one of two forms: a list of profiles, which every released broker
// reads, or a map with the keys FormatVersion, Settings, KMS and Profiles. Reading is
// strict: an unknown, misspelt or repeated key, a value of the wrong type and a value out of
// range are problems with file, line, column and field. All problems of a file are reported
// at once.
//
// The effect of a problem depends on its place. A problem inside one profile takes only that
// profile out of service. With a problem at the root of the file, or without valid YAML, the
// broker uses nothing of the file and keeps the last good set. It does not guess what a
// policy means.
//
// Compile turns a file into a Set, which never changes afterwards and is safe
// for concurrent use. Package directory follows a directory of profiles and keeps
// the last good Set.
//
// A table of sections has what a profile may offer, see [Sections]. Each row is one
// operation, or an operation and its inverse. Its file operation_….go has its fields, checks,
// policy, strength, FIPS verdict, warnings and version of the format. Package algorithm has
// what is known about algorithms.
//
// The parts of a profile that several operations share, or that stand alone, have packages of their
// own: keyrules has which keys an operation may use, extensions the rules for extensions of
// certificates, and callers who may use a profile.
//
// The package does not know Kubernetes and gRPC.
package profile
