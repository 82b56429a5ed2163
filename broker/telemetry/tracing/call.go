// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
)

// Keys of the attributes that OpenTelemetry's conventions do not define.
const (
	operationKey     = attribute.Key("crypto_broker.operation")
	profileKey       = attribute.Key("crypto_broker.profile")
	algorithmKey     = attribute.Key("crypto_broker.algorithm")
	containerKey     = attribute.Key("crypto_broker.caller.container")
	correlationIDKey = attribute.Key("crypto_broker.correlation_id")
)

// maxCorrelationID is the largest size in bytes that the wire contract allows.
const maxCorrelationID = 128

// Call is a call that has ended.
type Call struct {
	// Method is gRPC's name of the method, such as /package.Service/Method.
	Method string
	// Batched reports whether the call was one of many in a stream. Then the headers of the
	// stream do not belong to the call.
	Batched bool
	// Operation is the name of the operation. Profile and Algorithm are the names of the
	// profile and of its algorithm, empty if the call named no profile that is served.
	Operation, Profile, Algorithm string
	// Container is the name of the caller, empty if it has no socket of its own.
	Container string
	Code      codes.Code
	// Metadata is the metadata of the request as it was on the wire.
	Metadata       []byte
	Started, Ended time.Time
}

// Record makes a span of a call if the call is sampled. ctx has the headers of the call. The
// parent of the span is in the metadata of the request, else in the headers. Record ignores
// a parent that is not valid. It returns the id of the trace, empty if the call is not sampled.
func (t *Tracer) Record(ctx context.Context, c *Call) (traceID string) {
	said := readTraceContext(c.Metadata)
	var parent trace.SpanContext
	if t.readParents {
		if parent = said.parent(); !parent.IsValid() && !c.Batched {
			parent = parentOf(ctx)
		}
	}
	in := parent.TraceID()
	if !in.IsValid() {
		in = newTraceID()
	}
	if !t.decision.samples(parent, in) {
		return ""
	}
	if ctx = context.Background(); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	} else {
		ctx = context.WithValue(ctx, traceIDKey{}, in)
	}
	name := strings.TrimPrefix(c.Method, "/")
	if c.Batched {
		name += " " + c.Operation
	}
	_, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithTimestamp(c.Started), trace.WithAttributes(c.attributes(string(said.correlationID))...))
	if isFault(c.Code) {
		span.SetStatus(otelcodes.Error, "") // no message, because it may quote a request
	}
	span.End(trace.WithTimestamp(c.Ended))
	return in.String()
}

func (c *Call) attributes(correlationID string) []attribute.KeyValue {
	service, method, _ := strings.Cut(strings.TrimPrefix(c.Method, "/"), "/")
	list := append(make([]attribute.KeyValue, 0, 10),
		semconv.RPCSystemGRPC, semconv.RPCService(service), semconv.RPCMethod(method),
		semconv.RPCGRPCStatusCodeKey.Int(int(c.Code)), semconv.NetworkTransportUnix, operationKey.String(c.Operation))
	for _, known := range []struct {
		key   attribute.Key
		value string
	}{{profileKey, c.Profile}, {algorithmKey, c.Algorithm}, {containerKey, c.Container}} {
		if known.value != "" {
			list = append(list, known.key.String(known.value))
		}
	}
	if isCorrelationID(correlationID) {
		list = append(list, correlationIDKey.String(correlationID))
	}
	return list
}

// isFault reports whether a code is an error of the broker and not of the caller, as
// OpenTelemetry's conventions for gRPC servers define it.
func isFault(code codes.Code) bool {
	switch code {
	case codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss:
		return true
	}
	return false
}

// isCorrelationID reports whether the wire contract allows a correlation id.
func isCorrelationID(id string) bool {
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= maxCorrelationID
}
