// SPDX-License-Identifier: Apache-2.0

// Package server answers requests over gRPC on Unix sockets.
//
// There is one handler for each operation. An adapter for each generation of the wire contract
// turns its messages into the arguments of the handler, and the result into a message. Adapters
// decide nothing. Every reply has the metadata of its request byte for byte.
//
// The broker identifies the caller once for each connection: the socket identifies the container,
// and the kernel the user and the group, see package unixsocket.
//
// Each caller has a fixed share of connections, calls, streams and memory for messages, see
// package flow and docs/limits.md. The broker itself reads the messages of gRPC's streams. It
// reads the length of a message first, and refuses a message that is too long with
// INVALID_ARGUMENT. gRPC would answer RESOURCE_EXHAUSTED, after which clients try again. The
// broker refuses calls beyond the share of their caller with RESOURCE_EXHAUSTED. Fields have
// limits of their own, and the error names the field.
//
// A request is not logged, and no policy is parsed for it: one atomic load and one look into
// a map find its profile. A quick call takes the locks of its connection and of its caller,
// and no lock that all callers share. A slow call goes to the workers, which have one lock
// for all callers. The call takes that lock twice, see package work.
package server
