// SPDX-License-Identifier: Apache-2.0

// Package service serves the protocol of the key gateway. For each request it authenticates the
// pod, then checks whether the pod's namespace may use the key for the operation, and only then
// finds the key.
//
// Before it checks the token, it bounds what any client can take: connections, calls in flight of
// one address and of all, the size of messages, and the deadline that each call must have.
package service
