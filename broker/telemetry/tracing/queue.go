// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"sync/atomic"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Counts are the numbers of exported and dropped spans of one exporter.
type Counts struct {
	// Exporter is the name of the exporter.
	Exporter string
	// Exported is the number of spans that were exported. Full is the number of spans that were
	// dropped because too many waited, and Failed is the number of spans that were dropped
	// because their export failed.
	Exported, Full, Failed uint64
}

// queue counts the spans that OpenTelemetry's queue takes and exports. OpenTelemetry's queue
// drops spans without counting them, so this queue drops them before, at the same limit. It never
// waits.
type queue struct {
	sdk.SpanProcessor // OpenTelemetry's queue
	name              string
	exporter          sdk.SpanExporter
	problems          *problems

	limit   int64
	waiting atomic.Int64

	exported, full, failed atomic.Uint64
	// ending is a context that ends exports when the broker ends.
	ending context.Context
}

func newQueue(ending context.Context, name string, exporter sdk.SpanExporter, b batch, p *problems) *queue {
	q := &queue{name: name, exporter: exporter, problems: p, limit: int64(b.queue), ending: ending}
	q.SpanProcessor = sdk.NewBatchSpanProcessor(exporting{q},
		sdk.WithMaxQueueSize(b.queue), sdk.WithMaxExportBatchSize(b.size),
		sdk.WithBatchTimeout(b.delay), sdk.WithExportTimeout(b.timeout))
	return q
}

func (q *queue) counts() Counts {
	return Counts{q.name, q.exported.Load(), q.full.Load(), q.failed.Load()}
}

// OnEnd implements sdk.SpanProcessor.
func (q *queue) OnEnd(span sdk.ReadOnlySpan) {
	if q.waiting.Add(1) > q.limit {
		q.waiting.Add(-1)
		q.full.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// exporting makes a queue the exporter of OpenTelemetry's queue.
type exporting struct{ *queue }

// ExportSpans implements sdk.SpanExporter.
func (e exporting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ending, cancel)()
	err := e.exporter.ExportSpans(ctx, spans)
	e.waiting.Add(-int64(len(spans)))
	if err != nil {
		e.failed.Add(uint64(len(spans)))
		e.problems.failed(e.name, err)
		return nil // problems has logged it
	}
	e.exported.Add(uint64(len(spans)))
	e.problems.succeeded(e.name)
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (e exporting) Shutdown(ctx context.Context) error { return e.exporter.Shutdown(ctx) }
