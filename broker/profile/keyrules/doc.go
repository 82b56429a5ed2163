// SPDX-License-Identifier: Apache-2.0

// Package keyrules has which keys an operation of a profile may use.
//
// A profile file lists keys of the broker by their ids, [ID], and limits the algorithms and sizes of
// keys, [Constraints]. [CheckIDs] and [Constraints.Check] find what is wrong with them. [NewPolicy]
// makes the [Policy] of a list without problems, and [NewLimits] and [OnlyListed] make [Limits]. They
// never change and are safe for concurrent use.
//
// The package does not know keys: package engine asks it about their algorithms and sizes, and
// package handlers about their ids.
package keyrules
