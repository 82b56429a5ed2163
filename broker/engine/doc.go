// SPDX-License-Identifier: Apache-2.0

// Package engine computes what the operations of a profile ask for, by Go's
// standard library, ML-DSA and CMS apart. It knows no transport and no files; what is allowed
// was decided by package profile.
package engine
