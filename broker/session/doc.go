// SPDX-License-Identifier: Apache-2.0

// Package session ends encrypted sessions: clients of an application agree on a key with the broker,
// and then send encrypted requests through whatever ends TLS on the way.
//
// Clients exist for two versions of the protocol. The application passes the headers and bodies of clients to the broker as they
// are. See docs/operations/session.md for the protocol, and for what differs from the first servers of the protocol. See
// docs/session-native.md for the native versions.
//
// The broker keeps sessions in its memory. The user of a [Store] has checked the caller and the
// profile of each call, and gives the policy of the profile as it is now.
package session
