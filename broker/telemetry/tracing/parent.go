// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of the trace context in the metadata of a request, and of the fields of the
// trace context. They are the same in all generations of the wire contract.
const (
	fieldTraceContext protowire.Number = 3

	fieldTraceID, fieldSpanID, fieldTraceFlags protowire.Number = 1, 2, 3
	fieldTraceState, fieldCorrelationID        protowire.Number = 4, 5
)

// traceContext has the fields of the trace context of a request.
type traceContext struct {
	traceID, spanID, flags, state, correlationID []byte
}

// readTraceContext returns the trace context in the encoded metadata of a request. It
// ignores fields that cannot be read, because the broker has refused such a request.
func readTraceContext(fields []byte) (found traceContext) {
	each(fields, func(_ protowire.Number, content []byte) {
		each(content, func(number protowire.Number, content []byte) {
			if number != fieldTraceContext {
				return
			}
			each(content, func(number protowire.Number, content []byte) {
				switch number {
				case fieldTraceID:
					found.traceID = content
				case fieldSpanID:
					found.spanID = content
				case fieldTraceFlags:
					found.flags = content
				case fieldTraceState:
					found.state = content
				case fieldCorrelationID:
					found.correlationID = content
				}
			})
		})
	})
	return found
}

// TraceIDOf returns the trace id of a call, 32 hex digits, or an empty text if the call has no
// valid one. The id is in the encoded metadata of the request, or else in the headers in ctx. The
// headers of a stream with many calls do not count.
func TraceIDOf(ctx context.Context, metadata []byte, batched bool) string {
	said := readTraceContext(metadata)
	parent := said.parent()
	if !parent.IsValid() && !batched {
		parent = parentOf(ctx)
	}
	if !parent.IsValid() {
		return ""
	}
	return parent.TraceID().String()
}

// each calls use with each field whose wire type is bytes.
func each(wire []byte, use func(protowire.Number, []byte)) {
	for len(wire) > 0 {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return
		}
		wire = wire[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, wire); n < 0 {
				return
			}
			wire = wire[n:]
			continue
		}
		content, n := protowire.ConsumeBytes(wire)
		if n < 0 {
			return
		}
		use(number, content)
		wire = wire[n:]
	}
}

// parent returns the span that the context names. It is not valid if the context names none.
func (t *traceContext) parent() trace.SpanContext {
	id, err := trace.TraceIDFromHex(string(t.traceID))
	if err != nil {
		return trace.SpanContext{}
	}
	span, err := trace.SpanIDFromHex(string(t.spanID))
	if err != nil {
		return trace.SpanContext{}
	}
	// A span without flags counts as sampled.
	flags := trace.FlagsSampled
	if len(t.flags) > 0 {
		bits, err := strconv.ParseUint(string(t.flags), 16, 8)
		if err != nil {
			return trace.SpanContext{}
		}
		flags = trace.TraceFlags(bits)
	}
	// As in headers, an invalid state does not make the parent invalid.
	state, err := trace.ParseTraceState(string(t.state))
	if err != nil {
		state = trace.TraceState{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: flags, TraceState: state, Remote: true})
}

// parentOf returns the parent that the headers traceparent and tracestate of a call name.
func parentOf(ctx context.Context) trace.SpanContext {
	headers := headerCarrier{ctx}
	if headers.Get("traceparent") == "" {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), headers))
}

// headerCarrier reads the headers of a call.
type headerCarrier struct{ ctx context.Context }

// Get implements propagation.TextMapCarrier.
func (h headerCarrier) Get(key string) string {
	if values := metadata.ValueFromIncomingContext(h.ctx, key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (headerCarrier) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (headerCarrier) Keys() []string { return nil }
