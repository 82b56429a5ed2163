// SPDX-License-Identifier: Apache-2.0

// Package rollout decides how far the change of a profile with spec.rollout has come.
//
// The reconciler writes status.rollout of the profile, and changes nothing else. Package
// profileset renders the set by the status: [Reach] returns which part of a namespace's brokers
// the new profile reaches. During a rollout, the old profile is the baseline, for the guard as
// well.
//
// The pure function attempt.next computes the next status from the reports of brokers.
package rollout
