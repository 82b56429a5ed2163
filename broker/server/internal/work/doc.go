// SPDX-License-Identifier: Apache-2.0

// Package work runs slow calls in a pool of workers, one for each processor. Callers take
// turns, and so do the connections and streams of a caller.
//
// The pool has one lock for all callers. A job takes it twice: once when it is submitted,
// and once when a worker takes it. Quick calls do not take it.
package work
