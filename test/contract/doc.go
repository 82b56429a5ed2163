// SPDX-License-Identifier: Apache-2.0

// Package contract has the cases that every client of the broker has to pass, and what runs
// them. README.md has the form of the cases and what a driver of a client does.
package contract
