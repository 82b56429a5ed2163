// SPDX-License-Identifier: Apache-2.0

// Package federation lets key access services ask each other for data keys.
//
// A client asks one service for the data keys of a file whose shares are wrapped for several services. The service forwards the
// request to its peers, all at the same time, and returns their results with its own.
//
// A service forwards what the client has sent: its token, its proof and its signed request. The peer checks them as the service
// itself does. So a service cannot ask in the name of a client who has not asked, for another data key, or for another
// recipient. The peer wraps its data keys to the client's key; the service that forwards sees none of them.
//
// Around it is a statement that the forwarding service signs, with the services that the request came by. The reply is a
// statement of the peer. There are no replies without one.
//
// The package knows nothing of data keys and policies: package keyaccess serves what arrives.
package federation
