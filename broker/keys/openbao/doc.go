// SPDX-License-Identifier: Apache-2.0

// Package openbao has the key providers of OpenBao servers and of Vault servers. Both have the
// same HTTP API for the requests of this package.
//
// There are two engines. The keys of the Transit engine stay in the server, which signs, encrypts
// and wraps with them. The keys of the key-value engine, version 2, are read by the broker.
//
// A connection has one request at a time, over HTTP/1.1, so that package pool bounds and shares
// connections as for other key managers. It does not follow redirects, because each request
// contains the token.
package openbao
