// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

const (
	// defaultServiceName is the same name as in brokers before version 1.
	defaultServiceName = "crypto-broker-server"
	serviceNamespace   = "crypto-broker"
	// defaultScope is the name of the instrumentation scope of the spans of brokers.
	defaultScope = "github.com/crypto-broker/crypto-broker-operator/broker"

	defaultTimeout = 10 * time.Second
	// flushTime is the longest time that a broker waits for a collector when it ends.
	flushTime = 2 * time.Second
)

// Options are the settings of a tracer that do not come from the environment.
type Options struct {
	// Version is the version of the program.
	Version string
	// Scope is the name of the instrumentation scope of the spans, the broker's if it is empty.
	Scope string
	// Stdout is the output of the exporter console.
	Stdout io.Writer
	// Logger logs why exports fail.
	Logger *slog.Logger
}

// Tracer makes spans of calls that have ended.
type Tracer struct {
	decision    decision
	readParents bool
	tracer      trace.Tracer
	provider    *sdk.TracerProvider
	queues      []*queue
	end         context.CancelFunc
}

// New returns the tracer that the configuration asks for, or nil if it asks for none. It
// does not connect to a collector.
func New(ctx context.Context, c *Config, o Options) (*Tracer, error) {
	if !c.Enabled() {
		return nil, nil
	}
	from, err := c.resource(ctx, o.Version)
	if err != nil {
		return nil, err
	}
	ending, end := context.WithCancel(context.Background())
	t := &Tracer{decision: c.decision(), readParents: c.readsParents(), end: end}
	p := &problems{logger: o.Logger, failing: map[string]bool{}, secrets: c.collector.secrets()}
	otel.SetErrorHandler(p)
	options := []sdk.TracerProviderOption{
		sdk.WithResource(from), sdk.WithIDGenerator(ids{}),
		sdk.WithSampler(sdk.AlwaysSample()), // Record makes spans of sampled calls only
	}
	for _, name := range c.exports() {
		exporter, err := c.exporter(ctx, name, o.Stdout)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("set up the export of spans: %w", err), t.Shutdown(ctx))
		}
		q := newQueue(ending, name, exporter, c.batch, p)
		t.queues = append(t.queues, q)
		options = append(options, sdk.WithSpanProcessor(q))
	}
	t.provider = sdk.NewTracerProvider(options...)
	t.tracer = t.provider.Tracer(cmp.Or(o.Scope, defaultScope), trace.WithInstrumentationVersion(o.Version), trace.WithSchemaURL(semconv.SchemaURL))
	return t, nil
}

// resource returns the description of the broker that all spans have.
func (c *Config) resource(ctx context.Context, version string) (*resource.Resource, error) {
	known := []attribute.KeyValue{
		semconv.ServiceNamespace(serviceNamespace), semconv.ServiceName(defaultServiceName), semconv.ServiceVersion(version),
	}
	known = append(known, c.attributes...) // of attributes with one key, the last one counts
	if c.serviceName != "" {
		known = append(known, semconv.ServiceName(c.serviceName))
	}
	if c.serviceVersion != "" {
		known = append(known, semconv.ServiceVersion(c.serviceVersion))
	}
	from, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(known...))
	if err != nil {
		return nil, fmt.Errorf("make the resource of the spans: %w", err)
	}
	return from, nil
}

// Counts returns the numbers of exported and dropped spans, by exporter.
func (t *Tracer) Counts() []Counts {
	counts := make([]Counts, len(t.queues))
	for i, q := range t.queues {
		counts[i] = q.counts()
	}
	return counts
}

// Shutdown exports the spans that are left until ctx ends, but at most for two seconds, and
// stops. It returns an error if it could not export all spans in that time.
func (t *Tracer) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	defer t.end()
	if t.provider == nil {
		return nil
	}
	err := t.provider.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the last spans could not be exported within %s", flushTime)
	}
	return err
}
