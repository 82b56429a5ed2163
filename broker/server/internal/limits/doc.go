// SPDX-License-Identifier: Apache-2.0

// Package limits has the sizes of the largest messages that the broker accepts and sends, and of
// their largest parts. docs/limits.md explains them.
package limits
