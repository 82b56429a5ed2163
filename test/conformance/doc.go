// SPDX-License-Identifier: Apache-2.0

// Conformance holds the broker against test vectors that others published. It
// builds the broker as images have it, runs it with a profile for each algorithm
// that the vectors are about, and sends every vector through the socket. It knows
// the protocol by field numbers of its own, not by the broker's stubs.
//
// What the broker refuses on purpose, such as nonces of another size than 12
// bytes, has to be refused with the right code and the sentence that says so.
// Every other difference is a failure, and the exit code 1. It is a module of its
// own, so that vectors and linters are no dependencies of the broker.
package main
