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
// The forwarding service sends it in a signed statement, with the services that the request has
// passed. The reply is a signed statement of the peer.
//
// The package does not know data keys and policies. Package keyaccess serves the requests of
// peers.
package federation
