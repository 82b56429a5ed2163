// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit/otlp"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
)

// changeTraces has the settings of the operator's own spans.
type changeTraces struct {
	endpoint, authorities, ratio string
	config                       *tracing.Config
}

func (c *changeTraces) flags(f *pflag.FlagSet) {
	f.StringVar(&c.endpoint, "traces-endpoint", "", "`url` of an OpenTelemetry collector that gets a trace of each change of a profile by OTLP over gRPC: http:// or https://, a host and a port; no spans if empty")
	f.StringVar(&c.authorities, "traces-ca-bundle", "", "certificate authorities of a --traces-endpoint that begins with https://, as `PEM`; without it, the authorities of the system")
	f.StringVar(&c.ratio, "traces-ratio", "1", "the `ratio` of the changes of profiles that get a trace, from 0 to 1")
}

func (c *changeTraces) check(problem func(flag, found, expected string)) {
	c.config = tracing.NewConfig()
	if c.endpoint == "" {
		if c.authorities != "" {
			problem("traces-ca-bundle", "set", "nothing without --traces-endpoint")
		}
		return
	}
	_, secured, err := otlp.ParseEndpoint(c.endpoint)
	switch {
	case err != nil:
		problem("traces-endpoint", c.endpoint, strings.TrimPrefix(err.Error(), "expected "))
		return
	case c.authorities != "" && !secured:
		problem("traces-ca-bundle", "set", "nothing, because --traces-endpoint does not begin with https://")
		return
	}
	host, _ := os.Hostname() // without a name, the attribute is missing
	values := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": c.endpoint, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
		contract.TracesAuthoritiesVariable: c.authorities,
		"OTEL_TRACES_SAMPLER":              "traceidratio", "OTEL_TRACES_SAMPLER_ARG": c.ratio,
		"OTEL_SERVICE_NAME": "crypto-broker-operator", "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=" + host,
	}
	for _, v := range c.config.Variables() {
		value, set := values[v.Name]
		if !set {
			continue
		}
		if err := v.Set(value); err != nil {
			problem("traces-ratio", c.ratio, "a number from 0 to 1") // the other values are checked already
		}
	}
}

// use starts the export of spans. The result is nil if spans are not exported. end makes the
// spans of changes that are still followed, and exports all remaining spans.
func (c *changeTraces) use(ctx context.Context, registry prometheus.Registerer) (traces *changetrace.Tracer, end func(), err error) {
	spans, err := tracing.New(ctx, c.config, tracing.Options{
		Version: program.Version(version), Scope: "github.com/crypto-broker/crypto-broker-operator/controllers", Logger: slog.Default(),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("start the export of spans: %w", err)
	}
	if spans == nil {
		return nil, func() {}, nil
	}
	if err := registry.Register(spanCounts{spans}); err != nil {
		return nil, nil, err
	}
	traces = changetrace.New(spans)
	return traces, func() {
		traces.Close()
		if err := spans.Shutdown(context.WithoutCancel(ctx)); err != nil {
			slog.Default().Warn("the export of the last spans failed", "error", err)
		}
	}, nil
}

var spansDescription = prometheus.NewDesc("crypto_broker_operator_spans_total",
	"Spans of changes of profiles, by result: exported, or dropped because the collector did not take them in time.", []string{"result"}, nil)

// spanCounts collects the numbers of exported and dropped spans.
type spanCounts struct{ spans *tracing.Tracer }

// Describe implements prometheus.Collector.
func (spanCounts) Describe(to chan<- *prometheus.Desc) { to <- spansDescription }

// Collect implements prometheus.Collector.
func (s spanCounts) Collect(to chan<- prometheus.Metric) {
	var exported, dropped uint64
	for _, c := range s.spans.Counts() {
		exported += c.Exported
		dropped += c.Full + c.Failed
	}
	to <- prometheus.MustNewConstMetric(spansDescription, prometheus.CounterValue, float64(exported), "exported")
	to <- prometheus.MustNewConstMetric(spansDescription, prometheus.CounterValue, float64(dropped), "dropped")
}
