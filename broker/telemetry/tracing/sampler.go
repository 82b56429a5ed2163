// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// parentBased is the beginning of the names of samplers that follow the caller's decision.
const parentBased = "parentbased_"

// Sampler returns the name of the sampler with its argument, for the log.
func (c *Config) Sampler() string {
	name := c.sampler
	if name == "" {
		name = parentBased + "always_on"
	}
	if strings.HasSuffix(name, "traceidratio") && c.samplerArg != nil {
		name += " " + strconv.FormatFloat(*c.samplerArg, 'g', -1, 64)
	}
	return name
}

// decision is a sampler that can decide before there is a span.
type decision struct {
	// follows reports whether the caller's decision takes precedence.
	follows bool
	root    sdk.Sampler
}

func (c *Config) decision() decision {
	d := decision{follows: c.sampler == "" || strings.HasPrefix(c.sampler, parentBased)}
	switch strings.TrimPrefix(c.sampler, parentBased) {
	case "always_off":
		d.root = sdk.NeverSample()
	case "traceidratio":
		part := 1.0
		if c.samplerArg != nil {
			part = *c.samplerArg
		}
		d.root = sdk.TraceIDRatioBased(part)
	default:
		d.root = sdk.AlwaysSample()
	}
	return d
}

// samples reports whether a call gets a span. in is the trace of the call, and parent is its
// parent, which is not valid if there is none.
func (d decision) samples(parent trace.SpanContext, in trace.TraceID) bool {
	if d.follows && parent.IsValid() {
		return parent.IsSampled()
	}
	parameters := sdk.SamplingParameters{ParentContext: context.Background(), TraceID: in, Kind: trace.SpanKindServer}
	return d.root.ShouldSample(parameters).Decision == sdk.RecordAndSample
}

// ids makes random ids of spans, as OpenTelemetry does. A trace keeps the id that decision has
// used, and a [Span] keeps its own id.
type ids struct{}

type (
	traceIDKey struct{}
	spanIDKey  struct{}
)

// NewIDs implements sdk.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, ok := ctx.Value(traceIDKey{}).(trace.TraceID)
	if !ok {
		id = newTraceID()
	}
	return id, ids{}.NewSpanID(ctx, id)
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	id, _ = ctx.Value(spanIDKey{}).(trace.SpanID)
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}
