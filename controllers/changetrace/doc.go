// SPDX-License-Identifier: Apache-2.0

// Package changetrace makes one trace of each change of a profile: from its admission by the
// webhook to the last pod whose broker serves it.
//
// The webhook of any replica makes the first span, the leader all others, and they never talk
// about it. The ids of the trace and of its first span are a hash of the profile's UID and
// generation, which both know: the API server sets them before it calls the webhook.
//
// A [Tracer] bounds what it remembers and what it makes: [maxChanges] changes at a time, each for
// [limit], and for each change the spans of the last [maxSpans] namespaces and pods. Without a
// Tracer, which is nil then, nothing is done.
package changetrace
