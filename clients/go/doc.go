// SPDX-License-Identifier: Apache-2.0

// Package cryptobroker calls a Crypto Broker over a Unix socket. The broker does cryptographic
// operations. A named profile decides their algorithms, keys and limits.
//
// [New] returns a [Client] without connecting. A program needs one client, which all its
// goroutines share. Every method takes a context, and returns an [*Error] if the call failed.
//
// # Tries
//
// A call that ends with UNAVAILABLE, RESOURCE_EXHAUSTED or ABORTED is made again, with
// exponential backoff and full jitter, until the retry budget is spent (60 seconds, see
// [WithRetryBudget]) or its context ends. So a program may start before its broker, and no
// call is lost if a broker is killed and started again. Calls with other errors are not made
// again. A try ends when its context ends, or when the broker has not answered a ping of the
// connection for 90 seconds.
//
// All operations can be repeated, because a broker stores nothing of them. If the reply of a
// try was lost, the broker may have made a certificate, a signature or a ciphertext that
// nobody gets. If the broker makes the nonce, the repeated encryption has another nonce. Both
// tries are in the broker's count of encryptions with the key, in its metrics and in its audit
// records. Health is tried once.
//
// # The stream
//
// Requests of up to 16 KiB of all goroutines share one gRPC stream (cryptobroker.stream.v1,
// Exchange), which costs a fraction of a unary call for each request. Larger requests are
// unary calls, and so are all requests to a broker without the stream. Replies come in any
// order. At most 1,024 calls wait for their replies on the stream. Other calls wait for their
// turn.
//
// # Secrets
//
// Requests are copied. The package does not use the caller's slices after a method has
// returned. It overwrites its copies after use. Errors quote no secrets.
package cryptobroker
