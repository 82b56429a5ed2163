// SPDX-License-Identifier: Apache-2.0

package tracing

import "strings"

// Variable is a setting with the name that OpenTelemetry has for it.
type Variable struct {
	// Name is that of the environment variable.
	Name string
	// Flag is the name of the flag that mirrors it, empty where none does.
	Flag string
	// Kind is what the value is, in one word, and Usage what it does.
	Kind, Usage string
	// Secret reports that no message may quote the value.
	Secret bool
	// Set takes a value. Its error says what was expected.
	Set func(text string) error

	// signals reports that there is the same variable for all signals, too, with a
	// name without TRACES, which counts where this one is not set.
	signals bool
}

// Variables returns the settings that have an effect here, in the order in which
// they have to be set. Once OTEL_SDK_DISABLED, the first of them, is set to true,
// the others may have any value, since none has an effect.
//
// The limits of spans are not among them: OpenTelemetry's library reads those from
// the environment by itself, see [LimitVariables].
func (c *Config) Variables() []Variable {
	const otlp, traces = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	list := []Variable{
		{Name: "OTEL_SDK_DISABLED", Kind: "bool", Usage: "true switches traces off whatever else is set", Set: boolean(&c.disabled)},
		{Name: "OTEL_TRACES_EXPORTER", Flag: "traces-exporter", Kind: "exporters", Set: exporters(&c.exporters),
			Usage: "where spans go, separated by commas: otlp, console (standard output) or none; otlpgrpc and otlphttp are otlp with its protocol; without it otlp where an endpoint is set, else none"},
		{Name: traces + "PROTOCOL", signals: true, Flag: "traces-protocol", Kind: "protocol", Set: oneOf(&c.collector.protocol, protocolGRPC, protocolProtobuf, protocolJSON),
			Usage: "of otlp: grpc, http/protobuf or http/json; without it grpc for an endpoint that is host:port, else http/protobuf; also " + otlp + "PROTOCOL"},
		{Name: traces + "ENDPOINT", Flag: "traces-endpoint", Kind: "url", Secret: true, Set: endpoint(&c.endpoint),
			Usage: "URL of the collector: http://localhost:4317 for grpc and http://localhost:4318/v1/traces for http without it; also " + otlp + "ENDPOINT, to which http adds /v1/traces"},
		{Name: traces + "CERTIFICATE", signals: true, Flag: "traces-certificate", Kind: "path", Set: text(&c.collector.certificate),
			Usage: "file with the certificates, in PEM, of the authorities that the collector's is checked by; without it those of the system; also " + otlp + "CERTIFICATE"},
		{Name: traces + "CLIENT_CERTIFICATE", signals: true, Flag: "traces-client-certificate", Kind: "path", Set: text(&c.collector.clientCertificate),
			Usage: "file with the certificate, in PEM, that the collector knows the broker by; also " + otlp + "CLIENT_CERTIFICATE"},
		{Name: traces + "CLIENT_KEY", signals: true, Flag: "traces-client-key", Kind: "path", Set: text(&c.collector.clientKey),
			Usage: "file with the private key of that, in PEM; also " + otlp + "CLIENT_KEY"},
		{Name: "OTEL_TRACES_SAMPLER", Flag: "traces-sampler", Kind: "sampler", Set: sampler(&c.sampler),
			Usage: "which calls get a span: always_on, always_off, traceidratio, or with parentbased_ before it, where a caller's decision comes first; parentbased_always_on without it"},
		{Name: "OTEL_TRACES_SAMPLER_ARG", Flag: "traces-sampler-arg", Kind: "ratio", Set: ratio(&c.samplerArg),
			Usage: "the part of the calls that traceidratio samples, from 0 to 1"},
		{Name: "OTEL_SERVICE_NAME", Flag: "service-name", Kind: "name", Set: text(&c.serviceName),
			Usage: "service.name of the spans; " + defaultServiceName + " without it"},
		{Name: "OTEL_SERVICE_VERSION", Kind: "text", Set: text(&c.serviceVersion), Usage: "service.version of the spans, else that of the broker"},
		{Name: "OTEL_RESOURCE_ATTRIBUTES", Flag: "resource-attributes", Kind: "attributes", Set: attributes(&c.attributes),
			Usage: "more about where the spans come from: key=value, separated by commas, values percent-encoded"},
		{Name: "OTEL_PROPAGATORS", Kind: "names", Set: propagators(&c.propagators), Usage: "tracecontext continues callers' traces, baggage has no effect here, none starts a trace with each call; tracecontext,baggage without it"},

		{Name: traces + "HEADERS", signals: true, Kind: "headers", Secret: true, Set: headers(&c.collector.headers), Usage: "sent to the collector: name=value, separated by commas, values percent-encoded; also " + otlp + "HEADERS"},
		{Name: otlp + "HEADERS_AUTHORIZATION", Kind: "text", Secret: true, Set: headerValue(&c.collector.authorization), Usage: "value of the header Authorization"},
		{Name: traces + "COMPRESSION", signals: true, Kind: "compression", Set: oneOf(&c.collector.compression, "gzip", "none"), Usage: "gzip or none (the default); also " + otlp + "COMPRESSION"},
		{Name: traces + "TIMEOUT", signals: true, Kind: "milliseconds", Set: milliseconds(&c.collector.timeout), Usage: "how long an export may take in milliseconds, 10000 without it; also " + otlp + "TIMEOUT"},
		{Name: traces + "INSECURE", signals: true, Kind: "bool", Set: optionalBoolean(&c.collector.insecure), Usage: "whether a grpc endpoint that is host:port, with no http:// or https:// before it, is without TLS; also " + otlp + "INSECURE"},

		{Name: "OTEL_BSP_SCHEDULE_DELAY", Kind: "milliseconds", Set: milliseconds(&c.batch.delay), Usage: "how long spans wait for others in milliseconds, 5000 without it"},
		{Name: "OTEL_BSP_EXPORT_TIMEOUT", Kind: "milliseconds", Set: milliseconds(&c.batch.timeout), Usage: "how long an export with its repetitions may take in milliseconds, 30000 without it"},
		{Name: "OTEL_BSP_MAX_QUEUE_SIZE", Kind: "number", Set: number(&c.batch.queue, 1, maxQueue), Usage: "how many spans wait at most, 2048 without it; those beyond are dropped and counted"},
		{Name: "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", Kind: "number", Set: number(&c.batch.size, 1, maxQueue), Usage: "how many spans are exported together, 512 without it"},

		{Name: "OTEL_METRICS_EXPORTER", Kind: "exporter", Set: metricsExporter(&c.prometheus), Usage: "prometheus (at /metrics of the status port) or none; there is no other"},
		{Name: "OTEL_LOGS_EXPORTER", Kind: "exporter", Set: logsExporter, Usage: "console (see --log-output) or none; there is no other"},
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

// withGeneral adds the variables for all signals behind those for traces. A value
// for all signals counts only where there is none for traces.
func (c *Config) withGeneral(list []Variable, traces, otlp string) []Variable {
	const usage = "the same for all signals"
	general := []Variable{{Name: otlp + "ENDPOINT", Kind: "url", Secret: true, Usage: usage, Set: endpoint(&c.generalEndpoint)}}
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

// LimitVariables returns the names of the variables that limit spans. A broker's
// spans have attributes, but neither events nor links, so there are no others.
func LimitVariables() []string {
	return []string{
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
		"OTEL_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
	}
}
