// SPDX-License-Identifier: Apache-2.0

// Package logs makes the structured log of a program. All programs write lines of one schema
// (docs/logs.md has it), and all of them limit lines that repeat. The package does not know
// where a level comes from; it takes a [slog.Leveler], which may change at any time.
package logs
