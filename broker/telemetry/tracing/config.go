// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Config has the settings for traces from the environment and the command line. [NewConfig] makes
// it, and the functions Set of [Config.Variables] fill it.
type Config struct {
	disabled bool
	// exporters are the names in OTEL_TRACES_EXPORTER, nil if it is not set.
	exporters []string
	// endpoint is the endpoint for spans, which is used unchanged. generalEndpoint is the
	// endpoint for all signals, which is used if endpoint is empty. For HTTP a path is added to
	// generalEndpoint.
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

// collector has the settings for sending to a collector. An empty value is not set.
type collector struct {
	protocol, compression        string
	headers                      map[string]string
	authorization                string
	timeout                      time.Duration
	certificate                  string
	authorities                  string
	clientCertificate, clientKey string
	insecure                     *bool
}

// batch limits how many spans wait for their export, and for how long.
type batch struct {
	queue, size    int
	delay, timeout time.Duration
}

// Names of exporters.
const (
	exporterOTLP    = "otlp"
	exporterConsole = "console"
	exporterNone    = "none"
	// exporterGRPC and exporterHTTP stand for otlp with a protocol. Brokers before version 1 use
	// these names.
	exporterGRPC = "otlpgrpc"
	exporterHTTP = "otlphttp"
)

// Protocols of OTLP.
const (
	protocolGRPC     = "grpc"
	protocolProtobuf = "http/protobuf"
	protocolJSON     = "http/json"
)

// NewConfig returns a configuration with the defaults.
func NewConfig() *Config {
	return &Config{
		batch: batch{
			queue: sdk.DefaultMaxQueueSize, size: sdk.DefaultMaxExportBatchSize,
			delay:   sdk.DefaultScheduleDelay * time.Millisecond,
			timeout: sdk.DefaultExportTimeout * time.Millisecond,
		},
	}
}

// Enabled reports whether spans are exported: if an exporter is set, or if only an endpoint is
// set.
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

// Check reports values that do not fit together. Its error is one sentence.
func (c *Config) Check() error {
	if c.disabled {
		return nil
	}
	if c.batch.size > c.batch.queue {
		return fmt.Errorf("OTEL_BSP_MAX_EXPORT_BATCH_SIZE is %d, expected at most OTEL_BSP_MAX_QUEUE_SIZE, which is %d", c.batch.size, c.batch.queue)
	}
	for _, name := range c.exports() {
		if name == exporterConsole {
			continue
		}
		if _, err := c.target(name); err != nil {
			return err
		}
	}
	if c.collector.certificate != "" && c.collector.authorities != "" {
		return errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE and " + contract.TracesAuthoritiesVariable + ": found both, expected only one of the two")
	}
	if to := c.collector; (to.clientCertificate == "") != (to.clientKey == "") {
		return errors.New("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: found only one of the two, expected both or none")
	}
	return nil
}

// readsParents reports whether spans join the traces of callers.
func (c *Config) readsParents() bool {
	return c.propagators == nil || slices.Contains(c.propagators, "tracecontext")
}

// Targets returns the exporters with their protocols and endpoints, for the log.
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
