// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Variable is an environment variable about traces. OpenTelemetry defines all of them but
// [contract.TracesAuthoritiesVariable].
type Variable struct {
	// Name is the name of the environment variable.
	Name string
	// Flag is the name of the flag with the same effect, empty if there is none.
	Flag string
	// Kind is the kind of the value in one word. Usage says what the variable sets.
	Kind, Usage string
	// Secret reports whether messages must not quote the value.
	Secret bool
	// Set sets the value. Its error says what was expected.
	Set func(text string) error

	// signals reports whether a variable without TRACES in its name exists for all signals. The
	// value of that variable counts if this one is not set.
	signals bool
}

// Variables returns the variables that have an effect on a broker. Set them in this order. If OTEL_SDK_DISABLED, the first of them, is true, the others may have
// any value, because none has an effect.
//
// The limits of spans are not among them. OpenTelemetry's library reads them from the
// environment itself, see [LimitVariables].
func (c *Config) Variables() []Variable {
	const otlp, traces = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	list := []Variable{
		{Name: "OTEL_SDK_DISABLED", Kind: "bool", Usage: "true turns traces off, whatever else is set (default false)", Set: into(&c.disabled, boolean)},
		{Name: "OTEL_TRACES_EXPORTER", Flag: "traces-exporter", Kind: "exporters", Set: into(&c.exporters, exporters),
			Usage: "exporters of spans, separated by commas: otlp, console (standard output) or none; otlpgrpc is otlp over gRPC, and otlphttp is otlp over HTTP (default otlp if an endpoint is set, else none)"},
		{Name: traces + "PROTOCOL", signals: true, Flag: "traces-protocol", Kind: "protocol", Set: into(&c.collector.protocol, oneOf(protocolGRPC, protocolProtobuf, protocolJSON)),
			Usage: "protocol of otlp: grpc, http/protobuf or http/json (default grpc for an endpoint that is host:port, else http/protobuf); also " + otlp + "PROTOCOL"},
		{Name: traces + "ENDPOINT", Flag: "traces-endpoint", Kind: "url", Secret: true, Set: into(&c.endpoint, endpoint),
			Usage: "URL of the collector (default http://localhost:4317 for grpc, http://localhost:4318/v1/traces for http); also " + otlp + "ENDPOINT, to which http adds /v1/traces"},
		{Name: traces + "CERTIFICATE", signals: true, Flag: "traces-certificate", Kind: "path", Set: into(&c.collector.certificate, trimmed),
			Usage: "PEM file with the certificate authorities that verify the collector's certificate (default the authorities of the system); also " + otlp + "CERTIFICATE"},
		{Name: contract.TracesAuthoritiesVariable, Kind: "pem", Secret: true, Set: into(&c.collector.authorities, trimmed),
			Usage: "certificate authorities that verify the collector's certificate, as PEM text instead of a path; instead of " + otlp + "CERTIFICATE"},
		{Name: traces + "CLIENT_CERTIFICATE", signals: true, Flag: "traces-client-certificate", Kind: "path", Set: into(&c.collector.clientCertificate, trimmed),
			Usage: "PEM file with the client certificate that the broker presents to the collector; also " + otlp + "CLIENT_CERTIFICATE"},
		{Name: traces + "CLIENT_KEY", signals: true, Flag: "traces-client-key", Kind: "path", Set: into(&c.collector.clientKey, trimmed),
			Usage: "PEM file with the private key of the client certificate; also " + otlp + "CLIENT_KEY"},
		{Name: "OTEL_TRACES_SAMPLER", Flag: "traces-sampler", Kind: "sampler", Set: into(&c.sampler, sampler),
			Usage: "which calls get a span: always_on, always_off or traceidratio; with the prefix parentbased_ the broker follows the decision of the caller, if there is one (default parentbased_always_on)"},
		{Name: "OTEL_TRACES_SAMPLER_ARG", Flag: "traces-sampler-arg", Kind: "ratio", Set: into(&c.samplerArg, optional(ratio)),
			Usage: "ratio of the calls that traceidratio samples, from 0 to 1 (default 1)"},
		{Name: "OTEL_SERVICE_NAME", Flag: "service-name", Kind: "name", Set: into(&c.serviceName, trimmed),
			Usage: "service.name of the spans (default " + defaultServiceName + ")"},
		{Name: "OTEL_SERVICE_VERSION", Kind: "text", Set: into(&c.serviceVersion, trimmed), Usage: "service.version of the spans (default the version of the broker)"},
		{Name: "OTEL_RESOURCE_ATTRIBUTES", Flag: "resource-attributes", Kind: "attributes", Set: into(&c.attributes, attributes),
			Usage: "additional attributes of all spans: key=value, separated by commas, values percent-encoded"},
		{Name: "OTEL_PROPAGATORS", Kind: "names", Set: into(&c.propagators, propagators), Usage: "tracecontext continues the traces of callers; baggage has no effect; none starts a new trace with each call (default tracecontext,baggage)"},

		{Name: traces + "HEADERS", signals: true, Kind: "headers", Secret: true, Set: into(&c.collector.headers, headers), Usage: "headers for the collector: name=value, separated by commas, values percent-encoded; also " + otlp + "HEADERS"},
		{Name: otlp + "HEADERS_AUTHORIZATION", Kind: "text", Secret: true, Set: into(&c.collector.authorization, headerValue), Usage: "value of the header Authorization for the collector"},
		{Name: traces + "COMPRESSION", signals: true, Kind: "compression", Set: into(&c.collector.compression, oneOf("gzip", "none")), Usage: "compression of exports: gzip or none (default none); also " + otlp + "COMPRESSION"},
		{Name: traces + "TIMEOUT", signals: true, Kind: "milliseconds", Set: into(&c.collector.timeout, milliseconds), Usage: "timeout of one attempt to export, in milliseconds (default 10000); also " + otlp + "TIMEOUT"},
		{Name: traces + "INSECURE", signals: true, Kind: "bool", Set: into(&c.collector.insecure, optional(boolean)), Usage: "true turns TLS off for a grpc endpoint that is host:port, without http:// or https:// (default false); also " + otlp + "INSECURE"},

		{Name: "OTEL_BSP_SCHEDULE_DELAY", Kind: "milliseconds", Set: into(&c.batch.delay, milliseconds), Usage: "longest time that a span waits before an export, in milliseconds (default 5000)"},
		{Name: "OTEL_BSP_EXPORT_TIMEOUT", Kind: "milliseconds", Set: into(&c.batch.timeout, milliseconds), Usage: "timeout of an export with all its attempts, in milliseconds (default 30000)"},
		{Name: "OTEL_BSP_MAX_QUEUE_SIZE", Kind: "number", Set: into(&c.batch.queue, count(maxQueue)), Usage: "how many spans may wait for their export; the broker drops and counts further spans (default 2048)"},
		{Name: "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", Kind: "number", Set: into(&c.batch.size, count(maxQueue)), Usage: "largest number of spans in one export (default 512)"},

		{Name: "OTEL_METRICS_EXPORTER", Kind: "exporter", Set: into(&c.prometheus, metricsExporter), Usage: "exporter of metrics: prometheus (at /metrics of the status port) or none"},
		{Name: "OTEL_LOGS_EXPORTER", Kind: "exporter", Set: logsExporter, Usage: "exporter of logs: console (see --log-output) or none"},
	}
	list = c.withGeneral(list, traces, otlp)
	for i, v := range list[1:] {
		list[i+1].Set = func(text string) error {
			if c.disabled {
				return nil
			}
			return v.Set(text)
		}
	}
	return list
}

// withGeneral adds the variables for all signals after the variables for traces. A variable
// for all signals counts only if the variable for traces is not set.
func (c *Config) withGeneral(list []Variable, traces, otlp string) []Variable {
	const usage = "like the variable of the same name for traces, but for all signals"
	general := []Variable{{Name: otlp + "ENDPOINT", Kind: "url", Secret: true, Usage: usage, Set: into(&c.generalEndpoint, endpoint)}}
	for i, v := range list {
		if !v.signals {
			continue
		}
		isSet := false
		list[i].Set = func(text string) error {
			isSet = true
			return v.Set(text)
		}
		general = append(general, Variable{
			Name: otlp + strings.TrimPrefix(v.Name, traces), Kind: v.Kind, Usage: usage, Secret: v.Secret,
			Set: func(text string) error {
				if isSet {
					return nil
				}
				return v.Set(text)
			},
		})
	}
	return append(list, general...)
}

// LimitVariables returns the names of the variables that limit spans. Other limits have no
// effect, because a broker's spans have attributes, but neither events nor links.
func LimitVariables() []string {
	return []string{
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
		"OTEL_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
	}
}
