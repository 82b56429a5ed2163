// SPDX-License-Identifier: Apache-2.0

// Package logs makes the structured log of a program. All programs write lines of one schema
// (docs/logs.md has it), and all of them limit lines that repeat. The package takes a level from
// a [slog.Leveler], which may change at any time.
package logs
