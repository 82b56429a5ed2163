// SPDX-License-Identifier: Apache-2.0

// Package cryptobroker calls a Crypto Broker: cryptographic operations whose
// algorithms, keys and limits a named profile decides, over a Unix socket.
//
// New makes a Client without connecting; it is meant to live as long as the
// program, and to be shared by all goroutines. Every method takes a context and
// returns an *Error for a call that failed.
//
// # Tries
//
// A call that ends with UNAVAILABLE, RESOURCE_EXHAUSTED or ABORTED is made again,
// with exponential backoff and full jitter, until the retry budget is spent (60
// seconds, see WithRetryBudget) or its context ends. So a program may start before
// its broker does, and a broker may be killed and started again without a call
// being lost. Other errors are never tried again. A try lasts as long as its context
// allows, or until the broker has not answered a ping of the connection for 90
// seconds, as one does that was stopped.
//
// All operations are safe to repeat, since a broker keeps nothing of them. Where
// the reply of a try was lost, the broker may have made a certificate, a signature
// or a ciphertext that nobody gets; with a nonce of the broker's own the repeated
// encryption has another nonce. Only its count of encryptions by that key, its
// metrics and its audit records have both. Health is tried once.
//
// # The stream
//
// Requests of up to 16 KiB of all goroutines share one stream of gRPC
// (cryptobroker.stream.v1, Exchange), which costs a fraction of what a call of
// gRPC each does. Larger ones, and all where a broker does not have the stream,
// are calls of gRPC of their own. Replies come in any order. At most 1,024 calls
// are under way on the stream; others wait for their turn.
//
// # Secrets
//
// Requests are copied; the caller's slices are not used after a method returned.
// Copies of this package are overwritten after use. Errors quote no secrets.
package cryptobroker
