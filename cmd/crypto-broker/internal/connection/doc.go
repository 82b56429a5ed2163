// SPDX-License-Identifier: Apache-2.0

// Package connection connects a command to its broker. It has the flags that name the broker,
// calls with a deadline or with input in parts, lines of progress, and failures with their exit
// codes.
package connection
