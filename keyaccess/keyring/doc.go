// SPDX-License-Identifier: Apache-2.0

// Package keyring has the private keys of a key access service, from a directory that it
// follows:
//
//	<id>.key   PEM private key, not encrypted: RSA, ECDSA or ML-KEM
//	current    ids of the current keys, one a line
//
// Clients get the current key of an algorithm. All other keys go on unwrapping. An algorithm
// with one key needs no line in the file current; an algorithm with several does.
//
// A change counts as a whole: if a file of the directory is invalid, the keys before the change
// stay in use, and the observer gets the reason. So a new key and its line in the file current
// may be written one after the other.
package keyring
