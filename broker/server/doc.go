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
// What a request does is bounded by the size of its fields, each refused with
// INVALID_ARGUMENT and a sentence that names it. gRPC's own limit for a whole
// message is above the sum of them, since it answers RESOURCE_EXHAUSTED, which
// clients take as a reason to try again.
//
// On the way of a request no lock is taken, nothing is logged and no policy is
// parsed: the set of profiles is one atomic load and one map read away.
package server
