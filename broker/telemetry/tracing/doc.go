// SPDX-License-Identifier: Apache-2.0

// Package tracing makes a span of each call that is sampled and exports it by
// OpenTelemetry. What it does is set by the environment variables that
// OpenTelemetry defines; it is off unless they ask for it.
//
// A span is made when its call has ended, from what is known then: calls that
// are not sampled cost the look at their parent and nothing else. Spans name the
// operation, the profile, the algorithm, the calling container and the result;
// they never have anything of an input, a key or a reply in them.
package tracing
