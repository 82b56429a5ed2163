// SPDX-License-Identifier: Apache-2.0

// Package algorithm is the registry of the algorithms that profiles can choose.
//
// An algorithm is one row of one table: digests in digest.go, keys in key.go,
// signatures in signature.go and ciphers in cipher.go. A row has the name, the
// security strength, the verdict of FIPS 140-3, the limits of sizes, the
// version of the profile format that the algorithm came with, and the functions
// that compute it. Whoever needs one of these asks the row; no other package
// lists algorithms. A test fails for a row with a blank cell.
//
// Strengths are those of NIST SP 800-57 Part 1 Rev. 5, section 5.6.1, in bits.
// Names are found in any case, as released brokers do; those of keys are exact.
//
// Nothing here ever changes, so that everything is safe for concurrent use.
package algorithm
