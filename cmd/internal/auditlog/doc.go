// SPDX-License-Identifier: Apache-2.0

// Package auditlog opens the audit log of a program, as the flags that begin with --audit- say, and has
// its metrics.
package auditlog
