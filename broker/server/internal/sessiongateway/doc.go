// SPDX-License-Identifier: Apache-2.0

// Package sessiongateway serves encrypted sessions by HTTP/1.1 and HTTP/2 without TLS, for an
// application that does not implement them. It opens the requests of clients, forwards them to
// the application on the loopback address, and seals the replies. docs/session-gateway.md has the
// contract.
//
// The gateway is a caller of the broker with the name of the broker's container, and calls the
// operations of package handlers. So profiles, limits, metrics, audit records and spans are the
// same as for calls through a socket.
//
// The gateway makes a new request to the application, with the method, the path in normal form,
// the decrypted body, and headers from a short list. The application gets nothing else from the
// client.
package sessiongateway
