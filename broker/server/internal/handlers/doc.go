// SPDX-License-Identifier: Apache-2.0

// Package handlers serves the operations: it finds the profile of a call, checks that the
// caller may use it, finds the key, and has package engine do the rest.
//
// A handler takes plain arguments, so that all generations of the wire contract share it.
// It returns errors with the code and the sentence that the client gets. No request is
// logged, but for defects and failures inside the broker, and no input is in the log.
package handlers
