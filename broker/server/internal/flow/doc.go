// SPDX-License-Identifier: Apache-2.0

// Package flow gives each caller a fixed share of connections, calls, streams and memory
// for messages, and reads no more from a caller than its share allows. docs/limits.md has
// the limits.
//
// A [Caller] counts what the clients of one socket use of their share. From the connection to the
// reply, these parts limit a caller:
//
//   - Admission. A [Listener] accepts connections at a limited rate. If the caller has as many
//     connections as it may have, the one without calls for the longest time is closed. If all have
//     calls, the new connection is closed. [Credentials] finds out who calls.
//   - Turns. Each caller has a gate with a fixed number of turns. A connection is read only in a
//     turn, and a stream serves messages only in a [Turn]. The others wait at the gate.
//   - Slots. A call holds a [Slot] from its beginning until gRPC has written its reply. The slot
//     counts as one of the caller's calls, and holds the memory of the call's messages.
//   - Memory. [Incoming] reads a message only after the slot has memory for it and for its result.
//   - Transfers. A message is transferred while it is read, served and written. The bytes that a
//     caller transfers at one time are limited, so that other callers get the processors.
//   - Reclaim. gRPC drops some replies and does not say so. Their slots are ended after a second.
//   - Allowance. Bytes that clients send use up the allowance of their caller. Calls and messages
//     add to it. Bytes beyond the allowance are misuses. Calls beyond a limit, and calls that are
//     canceled before their request has arrived, are misuses too. A caller with many misuses is
//     throttled: the broker reads its connections slowly for a while.
//   - Slow clients. [WatchClients] closes connections whose clients do not send or do not read.
//
// [Codec] writes encoded replies.
//
// Locks belong to one connection or to one caller. No lock is shared by all callers.
//
// The package relies on three things that gRPC does not promise: it reads connections with
// ReadOnReady, its streams have ReadMessageHeader, and its first frame is SETTINGS. Tests
// fail if a version of gRPC changes one of these, see decision 0030.
package flow
