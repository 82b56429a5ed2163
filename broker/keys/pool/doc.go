// SPDX-License-Identifier: Apache-2.0

// Package pool shares connections to the endpoints of a key manager.
//
// A [Pool] has a few connections to each endpoint. It keeps them open, because a connection
// costs a TLS handshake with client authentication. [Pool.Do] runs one request:
//
//   - A request that changes nothing goes to the less loaded one of two endpoints that are
//     chosen at random. If the endpoint does not answer, the request goes to another one.
//   - A request that changes something goes to the first endpoint that can be used. It is
//     sent once at most, so that nothing is created twice.
//
// An endpoint that fails three times in a row gets no requests for ten seconds, and then one at a
// time until it answers. While a pool has no requests, it checks by its open connections whether
// its endpoints answer. Only failures with [keys.ErrUnavailable] count, because another try may
// succeed.
package pool
