// SPDX-License-Identifier: Apache-2.0

// Package kmip talks to key managers by KMIP 1.0 to 1.4 (OASIS Key Management
// Interoperability Protocol) over mutual TLS.
//
// A [Manager] has one or more servers that serve the same keys, and a pool of connections to
// them, see package pool. It remembers the protocol version of each server, so only the first
// connection to a server asks for it.
//
// Errors wrap the errors of package keys. Their texts name the operation, the reason of the server
// and the identifier of the key, and never have any part of a key.
package kmip
