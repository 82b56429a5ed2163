// SPDX-License-Identifier: Apache-2.0

// Package rpc runs the methods of gRPC services: it takes a slot for a call, reads its
// messages, counts it, keeps a defect to the one call, and writes its reply.
//
// [Unary] is for operations of profiles, [PlainUnary] for other methods. [Guard] gives
// services that are written for gRPC alone the same limits.
package rpc
