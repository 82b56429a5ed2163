// SPDX-License-Identifier: Apache-2.0

// Package directory follows the directory that profiles are mounted in and
// keeps the last good set of profiles.
//
// Watch reads the profile file, compiles it and looks again whenever the
// directory changes. A file that cannot be used never replaces one that could:
// the set before stays, and State and Event say why. Where WithTrust demands
// signed sets, Watch also refuses a set that nobody trusted has signed, or that
// is older than one that was served, and keeps the newest set in a state
// directory for the next start.
//
// Source is safe for concurrent use. The package changes nothing in the
// directory it follows.
package directory
