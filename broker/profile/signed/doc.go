// SPDX-License-Identifier: Apache-2.0

// Package signed signs sets of profiles for an audience, with a revision, and verifies the
// signatures.
//
// The file Profiles.sig beside Profiles.yaml has a signed statement. The statement has the
// digest of the profiles, the audience that may serve them, and a revision that only grows.
// It is in an envelope of the Dead Simple Signing Envelope (DSSE), version 1
// (https://github.com/secure-systems-lab/dsse), with Ed25519 signatures (RFC 8032; approved
// by FIPS 186-5).
//
// Each envelope has exactly one valid spelling: the fields in the order in which [Sign]
// writes them, each once, and no others. Every other spelling is refused, so that two
// readers cannot read a file in two ways.
package signed
