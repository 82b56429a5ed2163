// SPDX-License-Identifier: Apache-2.0

// Package server answers requests over gRPC on Unix sockets.
//
// There is one handler for each operation. An adapter for each generation of
// the wire contract turns its messages into the handler's arguments and the
// result back; it decides nothing. Every reply carries the metadata of its
// request byte for byte.
//
// Who calls is found out once a connection: the container by the socket it came
// in on, user and group by the credentials the kernel has of the peer.
//
// Each caller has a fixed share of connections, calls, streams and memory for
// messages, see caller and docs/limits.md. The broker reads messages from gRPC's
// streams by itself, see incoming: a message that is too long is refused by its
// length with INVALID_ARGUMENT, since gRPC answers RESOURCE_EXHAUSTED, which clients
// take as a reason to try again. What is beyond a share is refused with that code.
// Fields have limits of their own, each refused with a sentence that names it.
//
// On the way of a request nothing is logged and no policy is parsed: the set of
// profiles is one atomic load and one map read away. The locks that are taken are
// those of its own connection and of its own caller, never one of all callers, but
// for calls that go to the workers.
package server
