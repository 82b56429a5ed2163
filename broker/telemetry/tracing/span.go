// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is a span that has ended. Its maker has chosen the id of the trace, so two programs can
// make spans of one trace without communicating.
type Span struct {
	Trace trace.TraceID
	// ID is the id of the span. Parent is the id of its parent, zero for the first span of a
	// trace.
	ID, Parent trace.SpanID
	// Name is one of a few names.
	Name           string
	Kind           trace.SpanKind
	Started, Ended time.Time
	Attributes     []attribute.KeyValue
	// Failed reports whether the span has the status error.
	Failed bool
}

// Samples reports whether the sampler takes a trace that has no parent.
func (t *Tracer) Samples(in trace.TraceID) bool {
	return t.decision.samples(trace.SpanContext{}, in)
}

// Add makes a span. It does not ask the sampler, and never waits for an export.
func (t *Tracer) Add(s *Span) {
	ctx := context.WithValue(context.Background(), spanIDKey{}, s.ID)
	if s.Parent.IsValid() {
		parent := trace.SpanContextConfig{TraceID: s.Trace, SpanID: s.Parent, TraceFlags: trace.FlagsSampled, Remote: true}
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(parent))
	} else {
		ctx = context.WithValue(ctx, traceIDKey{}, s.Trace)
	}
	_, span := t.tracer.Start(ctx, s.Name, trace.WithSpanKind(s.Kind), trace.WithTimestamp(s.Started), trace.WithAttributes(s.Attributes...))
	if s.Failed {
		span.SetStatus(otelcodes.Error, "")
	}
	span.End(trace.WithTimestamp(s.Ended))
}
