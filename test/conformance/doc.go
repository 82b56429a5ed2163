// SPDX-License-Identifier: Apache-2.0

// Conformance tests the broker with published test vectors. It builds the broker as
// for images, runs it with a profile for each algorithm of the vectors, and sends
// every vector through the socket. It encodes the protocol with its own field
// numbers, not with the broker's stubs.
//
// The broker refuses some vectors on purpose, such as nonces of another size than 12
// bytes. It has to refuse them with the right code and message. Every other
// difference is a failure, with exit code 1. Vectors that wrap keys, and some that encrypt streams,
// call the packages of the broker, because operations choose data keys and nonces themselves.
//
// Conformance is a module of its own, so that vectors and linters are no dependencies of
// the broker.
package main
