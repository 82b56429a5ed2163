// SPDX-License-Identifier: Apache-2.0

// Package tlsprovider makes the TLS connections that a program opens: to collectors of traces, key
// managers and key gateways. A program has one implementation of TLS for all of them, which [Use]
// chooses at its start: crypto/tls, or another one that the program links and registers. Ordinary programs
// link crypto/tls alone.
//
// All implementations verify certificates and host names, always, and speak TLS 1.2 and 1.3. If a configuration needs something
// that the implementation cannot do, New returns an error instead of ignoring it.
//
// The package is not for servers, and not for the connection of a program to its Kubernetes cluster.
package tlsprovider
