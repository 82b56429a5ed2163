// SPDX-License-Identifier: Apache-2.0

// Package benchkeyaccess measures key access services whose keys are in a key manager. "make bench-key-access" runs it, and
// writes docs/reports/key-access.md; "make soak-key-access" works for an hour, and compares before and after.
package benchkeyaccess
