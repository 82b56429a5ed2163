// SPDX-License-Identifier: Apache-2.0

// Package served has the set of profiles that a broker serves. A set has the values that are
// computed once for all calls of a profile: its counters, the warning of a deprecated profile,
// and the operations that a broker refuses because it requires FIPS 140-3. A set never changes,
// so calls read it without a lock.
//
// [ListProfiles] describes the profiles that a caller may use, and [Set.Suggestion] names the profile
// that a caller may have meant. Neither names a profile that the caller may not use.
package served
