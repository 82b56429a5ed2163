// SPDX-License-Identifier: Apache-2.0

// Package rollout decides how far the change of a profile with spec.rollout has come.
//
// The reconciler writes status.rollout of the profile, and changes nothing else. Package
// profileset renders what the status says: [Reach] returns which part of a namespace's
// brokers the new profile reaches. While a rollout lasts, the old profile is what the
// namespace served, for the guard as well.
//
// The steps are a pure function of what was seen: change.next.
package rollout
