// SPDX-License-Identifier: Apache-2.0

// Package service serves the protocol of the key gateway. For each request it finds out which
// pod asks, then whether the pod's namespace may use the key so, and only then looks for the
// key.
//
// What a stranger can take is bounded before the token is looked at: by connections, by calls
// in flight of one address and of all, by the size of messages and by the deadline that each
// call must have.
package service
