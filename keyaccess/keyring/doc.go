// SPDX-License-Identifier: Apache-2.0

// Package keyring has the private keys of a key access service, from a directory that it
// follows:
//
//	<id>.key   PEM private key, not encrypted: RSA, ECDSA or ML-KEM
//	<id>.ref   name of a key in a key manager, and its version if it has versions: provider/key-id version
//	current    ids of the current keys, one a line
//
// Clients get the current key of an algorithm. All other keys go on unwrapping. An algorithm
// with one key needs no line in the file current; an algorithm with several does.
//
// A key of a key manager that does not answer is pending: clients do not get it, and it unwraps nothing
// until the key manager answers, which is tried again every ten seconds.
//
// A change counts as a whole: if a file of the directory is invalid, the keys before the change
// stay in use, and the observer gets the reason. So a new key and its line in the file current
// may be written one after the other.
package keyring
