// SPDX-License-Identifier: Apache-2.0

// Package tracing makes a span of each sampled call and exports it with OpenTelemetry. The
// environment variables that OpenTelemetry defines configure it. Without them, it is off.
//
// A span is made after its call has ended. So a call that is not sampled costs only the reading
// of its parent. Spans have the operation, the profile, the algorithm, the calling container and
// the result. They never have a part of an input, a key or a reply.
package tracing
