// SPDX-License-Identifier: Apache-2.0

// Package signed binds a set of profiles to a place and gives it a number.
//
// Beside Profiles.yaml lies Profiles.sig: a statement that names the digest of
// the profiles, where they may be served (the audience) and a revision that
// only grows, in an envelope of the Dead Simple Signing Envelope, version 1
// (https://github.com/secure-systems-lab/dsse), with Ed25519 signatures (RFC
// 8032; approved by FIPS 186-5).
//
// Each envelope has exactly one spelling: fields in the order in which Sign
// writes them, each once, none else. What deviates is refused, so nothing is
// read in two ways by two readers.
package signed
