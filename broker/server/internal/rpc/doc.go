// SPDX-License-Identifier: Apache-2.0

// Package rpc runs the methods of gRPC services. It takes a slot for a call, reads its messages,
// counts the call, and writes its reply. A panic fails only its own call.
//
// [Unary] is for operations of profiles, [PlainUnary] for other methods. [Guard] gives
// services that are written for gRPC alone the same limits.
package rpc
