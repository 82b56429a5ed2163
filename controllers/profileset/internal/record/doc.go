// SPDX-License-Identifier: Apache-2.0

// Package record has which namespaces were ever given a set, and the revision and the digest of the
// last set of each. The record outlasts the process: it is in ConfigMaps of the operator's own
// namespace. With it, the operator notices that somebody put an old set back.
//
// The record does not know profiles and does not decide anything. It is complete after [Record.Of]
// has returned without an error for the first time. Changes are written by [Record.Run].
package record
