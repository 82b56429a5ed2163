// SPDX-License-Identifier: Apache-2.0

// Package directory follows the directory with the mounted profiles, and keeps the last good set
// of profiles.
//
// [Watch] reads the profile file, compiles it, and reads it again whenever the directory changes.
// A file that cannot be used never replaces a good set. The broker continues to serve that set,
// and [State] and [Event] say why. With [WithTrust], Watch takes only signed sets. It refuses a
// set without a signature by a trusted key, and a set that is older than one that was served. It
// keeps the newest set in a state directory for the next start.
//
// [Source] is safe for concurrent use. The package changes nothing in the directory that it
// follows.
package directory
