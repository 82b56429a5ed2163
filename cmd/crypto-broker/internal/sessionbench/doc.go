// SPDX-License-Identifier: Apache-2.0

// Package sessionbench measures encrypted sessions from the side of the client: the time of each
// step of a new session, and of each step of an encrypted request. See docs/session-bench.md.
package sessionbench
