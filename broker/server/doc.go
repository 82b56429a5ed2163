// SPDX-License-Identifier: Apache-2.0

// Package server answers requests over gRPC on Unix sockets.
//
// There is one handler for each operation. An adapter for each generation of the wire
// contract turns its messages into the arguments of the handler, and the result into a
// message; it decides nothing. Every reply has the metadata of its request byte for byte.
//
// The broker finds out who calls once for each connection: the socket says which container
// it is, and the kernel which user and group, see package unixsocket.
//
// Each caller has a fixed share of connections, calls, streams and memory for messages, see
// package flow and docs/limits.md. The broker reads the messages of gRPC's streams by
// itself. It refuses a message that is too long by its length, with INVALID_ARGUMENT: gRPC
// would answer RESOURCE_EXHAUSTED, which clients take as a reason to try again. The broker
// refuses calls beyond the share of their caller with RESOURCE_EXHAUSTED. Fields have
// limits of their own, and the error names the field.
//
// A request is not logged, and no policy is parsed for it: one atomic load and one look into
// a map find its profile. A quick call takes the locks of its connection and of its caller,
// and no lock that all callers share. A slow call goes to the workers, which have one lock
// for all callers. The call takes that lock twice, see package work.
package server
