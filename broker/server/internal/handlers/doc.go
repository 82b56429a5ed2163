// SPDX-License-Identifier: Apache-2.0

// Package handlers serves the operations. A handler finds the profile of a call, checks that
// the caller may use the profile, finds the key, and calls package engine.
//
// A handler takes plain arguments, so that all generations of the wire contract share it.
// It returns errors with the code and the sentence that the client gets. It logs a request
// only if the request fails because of a defect or an error inside the broker. It never
// logs an input.
package handlers
