// SPDX-License-Identifier: Apache-2.0

// Package flow gives each caller a fixed share of connections, calls, streams and memory
// for messages, and reads no more from a caller than its share allows. docs/limits.md has
// the limits.
//
//   - [Listener] accepts connections, and [Credentials] finds out who calls.
//   - [Conn] is a connection. It decides when the broker reads it, and whether its client is too
//     slow.
//   - [Slot] is the part of the share that a call holds, from its beginning until its reply is
//     written.
//   - [Incoming] reads messages as soon as there is memory for them.
//   - [Turn] lets a stream serve messages while its caller may use a processor.
//   - [Codec] writes encoded replies.
//
// Locks belong to one connection or to one caller. No lock is shared by all callers.
//
// The package relies on three things that gRPC does not promise: it reads connections with
// ReadOnReady, its streams have ReadMessageHeader, and its first frame is SETTINGS. Tests
// fail if a version of gRPC changes one of these, see decision 0030.
package flow
