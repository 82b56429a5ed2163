// SPDX-License-Identifier: Apache-2.0

// Package session is the client's side of encrypted sessions in their native versions: of a program
// that sends encrypted requests to an application, whose broker opens them. Key agreement, keys and
// messages are described in docs/session-native.md.
//
// A client knows the name of the profile and the public key that signs for it. [Begin] makes the
// request that begins a session, and [Handshake.Finish] verifies the answer. Then [Session.Seal]
// encrypts requests and [Session.Open] decrypts their replies. How they travel is up to the program.
package session
