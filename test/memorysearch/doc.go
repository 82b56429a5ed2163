// SPDX-License-Identifier: Apache-2.0

// Package memorysearch searches the memory of a process for secrets, and has a key manager that a
// program with data keys can use meanwhile.
package memorysearch
