// SPDX-License-Identifier: Apache-2.0

// Package connection has the broker that a command calls: flags that name it, calls with a deadline or with
// input in parts, lines of progress, and failures with their exit codes.
package connection
