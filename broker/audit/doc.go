// SPDX-License-Identifier: Apache-2.0

// Package audit writes records of calls and of other events. A verifier finds a record that
// somebody removed, changed, moved or added later.
//
// A log is a text of lines, each a JSON object. The lines of one run of a program are a chain:
// each has a sequence number and the SHA-256 of the hash of the line before it and of its own
// text. From time to time, and at the end, a checkpoint signs the hash, so nobody without the key
// can make another chain. docs/audit.md has the format.
package audit
