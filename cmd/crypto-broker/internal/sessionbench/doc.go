// SPDX-License-Identifier: Apache-2.0

// Package sessionbench measures encrypted sessions as their clients see them: how long each step of a new
// session takes, and each step of an encrypted request. See docs/session-bench.md.
package sessionbench
