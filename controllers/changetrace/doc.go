// SPDX-License-Identifier: Apache-2.0

// Package changetrace makes one trace of each change of a profile: from its admission by the
// webhook to the last pod whose broker serves it.
//
// The webhook of any replica makes the first span, and the leader makes all others. They do not
// communicate. The ids of the trace and of its first span are a hash of the profile's UID and
// generation, which both know: the API server sets them before it calls the webhook.
//
// A [Tracer] follows at most [maxChanges] changes at a time, each for [limit], and makes spans of
// the last [maxSpans] namespaces and pods of each change. A nil Tracer does nothing.
package changetrace
