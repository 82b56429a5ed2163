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
	// endpoint is the one for spans, which is used as it is; without it
	// generalEndpoint, the one for all signals, to which HTTP adds a path.
	endpoint, generalEndpoint string
	collector                 collector
	sampler                   string
	samplerArg                *float64
	serviceName               string
	serviceVersion            string
	attributes                []attribute.KeyValue
	propagators               []string
	prometheus                bool
	batch                     batch
}

// collector is how to talk to a collector; empty values are not set.
type collector struct {
	protocol, compression        string
	headers                      map[string]string
	authorization                string
	timeout                      time.Duration
	certificate                  string
	clientCertificate, clientKey string
	insecure                     *bool
}

// batch is how spans are collected before they are exported.
type batch struct {
	queue, size    int
	delay, timeout time.Duration
}

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
	}
}

// Enabled reports whether spans are exported: an exporter is named, or none is but
// an endpoint is.
func (c *Config) Enabled() bool { return !c.disabled && len(c.exports()) > 0 }

// UsesPrometheus reports whether the environment expects metrics for Prometheus.
func (c *Config) UsesPrometheus() bool { return !c.disabled && c.prometheus }

// exports returns the names of the exporters to use, without "none".
func (c *Config) exports() []string {
	switch {
	case c.exporters == nil && (c.generalEndpoint != "" || c.endpoint != ""):
		return []string{exporterOTLP}
	case slices.Contains(c.exporters, exporterNone):
		return nil
	}
	return c.exporters
}

// Check checks what depends on more than one value. Its error is one sentence.
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
	if to := c.collector; (to.clientCertificate == "") != (to.clientKey == "") {
		return errors.New("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY belong together, and one of them is not set")
	}
	return nil
}

// readsParents reports whether callers' trace contexts are continued.
func (c *Config) readsParents() bool {
	return c.propagators == nil || slices.Contains(c.propagators, "tracecontext")
}

// Targets returns where spans go, for the log.
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
