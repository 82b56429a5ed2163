// SPDX-License-Identifier: Apache-2.0

// Package algorithm is the registry of the algorithms that profiles can choose.
//
// An algorithm is one row of one table: digests are in digest.go, keys in key.go, signatures
// in signature.go, ciphers in cipher.go, streams in stream.go and algorithms that wrap keys in
// wrapping.go. Their primitives are in primitive.go, with what NIST and the NSA plan for the
// time after quantum computers. A row has the name, the security strength, the verdict of FIPS 140-3, the limits
// of sizes, the first version of the profile format that has the algorithm, and what computes
// it. No other package has a list of algorithms. A test fails for a row with a blank cell.
//
// Strengths are in bits and from NIST SP 800-57 Part 1 Rev. 5, section 5.6.1, whose tables
// comments name. As in released brokers, upper and lower case of names do not matter, except
// for names of keys.
//
// Nothing in the package ever changes, so everything is safe for concurrent use.
package algorithm
