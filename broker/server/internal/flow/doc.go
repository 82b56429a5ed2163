// SPDX-License-Identifier: Apache-2.0

// Package flow gives each caller a fixed share of connections, calls, streams and memory
// for messages, and reads no more from a caller than its share allows. docs/limits.md has
// the limits.
//
//   - [Listener] accepts connections, and [Credentials] finds out who calls.
//   - [Conn] is a connection: when it is read, and whether its client is too slow.
//   - [Slot] is what a call holds of the share, from its beginning until its reply is written.
//   - [Incoming] reads messages, once there is memory for them.
//   - [Turn] lets a stream serve messages when its caller may use a processor.
//   - [Codec] writes replies that are encoded already.
//
// The package takes two locks: one of the connection and one of its caller. It has none
// that all callers share.
//
// gRPC promises neither that it reads connections by ReadOnReady, nor that streams have
// ReadMessageHeader, nor that its first frame is SETTINGS. Tests fail where one of these
// is not so any more, see decision 0030.
package flow
