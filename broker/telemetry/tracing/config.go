// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Config is what the environment and the command line say about traces. It is
// filled through Variables; its zero value is not usable, see NewConfig.
type Config struct {
	disabled bool
	// exporters are the names of OTEL_TRACES_EXPORTER, nil where it is not set.
	exporters []string
	// general is for all signals and traces for spans, which comes first.
	general, traces collector
	authorization   string
	sampler         string
	samplerArg      *float64
	serviceName     string
	serviceVersion  string
	attributes      []attribute.KeyValue
	propagators     []string
	prometheus      bool
	batch           batch
	limits          sdk.SpanLimits
	// attributeLimits are for everything that has attributes; those of spans in
	// limits come first.
	attributeLimits, spanAttributeLimits attributeLimits
}

// collector is how to reach a collector; empty values are not set.
type collector struct {
	protocol, endpoint, compression string
	headers                         map[string]string
	timeout                         time.Duration
	certificate                     string
	clientCertificate, clientKey    string
	insecure                        *bool
}

// batch is how spans are collected before they are exported.
type batch struct {
	queue, size    int
	delay, timeout time.Duration
}

type attributeLimits struct{ count, length *int }

// Names of exporters.
const (
	exporterOTLP    = "otlp"
	exporterConsole = "console"
	exporterNone    = "none"
	// exporterGRPC and exporterHTTP are otlp with its protocol, as brokers before
	// this one name them.
	exporterGRPC = "otlpgrpc"
	exporterHTTP = "otlphttp"
)

// Protocols of OTLP.
const (
	protocolGRPC     = "grpc"
	protocolProtobuf = "http/protobuf"
	protocolJSON     = "http/json"
)

// NewConfig makes a configuration in which nothing is set.
func NewConfig() *Config {
	return &Config{
		batch: batch{
			queue: sdk.DefaultMaxQueueSize, size: sdk.DefaultMaxExportBatchSize,
			delay:   sdk.DefaultScheduleDelay * time.Millisecond,
			timeout: sdk.DefaultExportTimeout * time.Millisecond,
		},
		limits: sdk.SpanLimits{
			AttributeValueLengthLimit:   sdk.DefaultAttributeValueLengthLimit,
			AttributeValueDepthLimit:    sdk.DefaultAttributeValueDepthLimit,
			AttributeCountLimit:         sdk.DefaultAttributeCountLimit,
			EventCountLimit:             sdk.DefaultEventCountLimit,
			LinkCountLimit:              sdk.DefaultLinkCountLimit,
			AttributePerEventCountLimit: sdk.DefaultAttributePerEventCountLimit,
			AttributePerLinkCountLimit:  sdk.DefaultAttributePerLinkCountLimit,
		},
	}
}

// Enabled tells whether spans are exported: where an exporter is named, or none
// is but an endpoint.
func (c *Config) Enabled() bool { return !c.disabled && len(c.exports()) > 0 }

// UsesPrometheus tells whether the environment expects metrics for Prometheus.
func (c *Config) UsesPrometheus() bool { return !c.disabled && c.prometheus }

// exports are the exporters to use, without the one that is none.
func (c *Config) exports() []string {
	switch {
	case c.exporters == nil && (c.general.endpoint != "" || c.traces.endpoint != ""):
		return []string{exporterOTLP}
	case slices.Contains(c.exporters, exporterNone):
		return nil
	}
	return c.exporters
}

// Check finds what no single value can tell. Its error is one sentence.
func (c *Config) Check() error {
	if c.disabled {
		return nil
	}
	if c.batch.size > c.batch.queue {
		return fmt.Errorf("OTEL_BSP_MAX_EXPORT_BATCH_SIZE is %d, which is more than OTEL_BSP_MAX_QUEUE_SIZE, %d", c.batch.size, c.batch.queue)
	}
	for _, name := range c.exports() {
		if name == exporterConsole {
			continue
		}
		if _, err := c.target(name); err != nil {
			return err
		}
	}
	to := c.collector()
	if (to.clientCertificate == "") != (to.clientKey == "") {
		return errors.New("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY belong together, and one of them is not set")
	}
	return nil
}

// collector is what there is for traces, else for all signals.
func (c *Config) collector() collector {
	to, all := c.traces, c.general
	for _, text := range []struct{ into, from *string }{
		{&to.protocol, &all.protocol}, {&to.compression, &all.compression}, {&to.certificate, &all.certificate},
		{&to.clientCertificate, &all.clientCertificate}, {&to.clientKey, &all.clientKey},
	} {
		if *text.into == "" {
			*text.into = *text.from
		}
	}
	if to.headers == nil {
		to.headers = all.headers
	}
	if to.timeout == 0 {
		to.timeout = all.timeout
	}
	if to.insecure == nil {
		to.insecure = all.insecure
	}
	return to
}

// limited are the limits of spans.
func (c *Config) limited() sdk.SpanLimits {
	limits := c.limits
	for _, set := range []attributeLimits{c.attributeLimits, c.spanAttributeLimits} {
		if set.count != nil {
			limits.AttributeCountLimit = *set.count
		}
		if set.length != nil {
			limits.AttributeValueLengthLimit = *set.length
		}
	}
	return limits
}

// readsParents tells whether callers' trace contexts are continued.
func (c *Config) readsParents() bool {
	return c.propagators == nil || slices.Contains(c.propagators, "tracecontext")
}

// Targets tell where spans go, for the log.
func (c *Config) Targets() []string {
	var targets []string
	for _, name := range c.exports() {
		if t, err := c.target(name); err == nil && name != exporterConsole {
			name += " " + t.protocol + " " + t.endpoint
		}
		targets = append(targets, name)
	}
	return targets
}
