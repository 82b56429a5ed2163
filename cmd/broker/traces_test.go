// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestAWrongVariableOfOpenTelemetryIsNamedInOneSentence(t *testing.T) {
	const samplers = "expected always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or parentbased_traceidratio"
	for sentence, test := range map[string]struct {
		env, want string
	}{
		"an exporter that there is not":     {"OTEL_TRACES_EXPORTER=zipkin", `invalid value "zipkin" of the environment variable OTEL_TRACES_EXPORTER: found "zipkin", expected otlp, console, none, otlpgrpc, otlphttp`},
		"none and another":                  {"OTEL_TRACES_EXPORTER=none,otlp", `invalid value "none,otlp" of the environment variable OTEL_TRACES_EXPORTER: expected none as the only name`},
		"metrics pushed":                    {"OTEL_METRICS_EXPORTER=otlp", `invalid value "otlp" of the environment variable OTEL_METRICS_EXPORTER: found "otlp", expected prometheus, none`},
		"metrics without a port":            {"OTEL_METRICS_EXPORTER=prometheus", `OTEL_METRICS_EXPORTER is prometheus, but there is no status port to serve metrics at: set --status-address, too`},
		"logs pushed":                       {"OTEL_LOGS_EXPORTER=otlp", `invalid value "otlp" of the environment variable OTEL_LOGS_EXPORTER: found "otlp", expected console, none`},
		"a sampler that there is not":       {"OTEL_TRACES_SAMPLER=jaeger_remote", `invalid value "jaeger_remote" of the environment variable OTEL_TRACES_SAMPLER: ` + samplers},
		"a part above the whole":            {"OTEL_TRACES_SAMPLER_ARG=1.5", `invalid value "1.5" of the environment variable OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1`},
		"a part that is no number":          {"OTEL_TRACES_SAMPLER_ARG=NaN", `invalid value "NaN" of the environment variable OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1`},
		"a propagator that there is not":    {"OTEL_PROPAGATORS=tracecontext,b3", `invalid value "tracecontext,b3" of the environment variable OTEL_PROPAGATORS: found "b3", expected tracecontext, baggage, none`},
		"a protocol that there is not":      {"OTEL_EXPORTER_OTLP_PROTOCOL=thrift", `invalid value "thrift" of the environment variable OTEL_EXPORTER_OTLP_PROTOCOL: expected one of grpc, http/protobuf, http/json`},
		"an endpoint that is no URL":        {"OTEL_EXPORTER_OTLP_ENDPOINT=collector", `invalid value of the environment variable OTEL_EXPORTER_OTLP_ENDPOINT: found "collector", expected a URL such as http://collector:4317 or https://collector:4318, without user, query and fragment, or host:port for grpc`},
		"an endpoint with a password":       {"OTEL_EXPORTER_OTLP_ENDPOINT=https://me:secret@collector", `invalid value of the environment variable OTEL_EXPORTER_OTLP_ENDPOINT: expected a URL such as http://collector:4317 or https://collector:4318, without user, query and fragment, or host:port for grpc`},
		"HTTP to host and port":             {"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318", `OTEL_EXPORTER_OTLP_ENDPOINT is "collector:4318", but OTLP over HTTP needs a URL that begins with http:// or https://`},
		"headers without a value, unquoted": {"OTEL_EXPORTER_OTLP_HEADERS=secret", `invalid value of the environment variable OTEL_EXPORTER_OTLP_HEADERS: expected key=value, separated by commas`},
		"a time with a unit":                {"OTEL_EXPORTER_OTLP_TIMEOUT=10s", `invalid value "10s" of the environment variable OTEL_EXPORTER_OTLP_TIMEOUT: expected milliseconds, a number from 1 to 2147483647`},
		"a compression that there is not":   {"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=zstd", `invalid value "zstd" of the environment variable OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: expected one of gzip, none`},
		"half a pair":                       {"OTEL_EXPORTER_OTLP_CLIENT_KEY=/key", `OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: found only one of the two, expected both or none`},
		"neither yes nor no":                {"OTEL_SDK_DISABLED=off", `invalid value "off" of the environment variable OTEL_SDK_DISABLED: expected true or false`},
		"a batch above the queue":           {"OTEL_BSP_MAX_QUEUE_SIZE=100", `OTEL_BSP_MAX_EXPORT_BATCH_SIZE is 512, expected at most OTEL_BSP_MAX_QUEUE_SIZE, which is 100`},
		"attributes without a value":        {"OTEL_RESOURCE_ATTRIBUTES=a", `invalid value "a" of the environment variable OTEL_RESOURCE_ATTRIBUTES: expected key=value, separated by commas`},
	} {
		t.Run(sentence, func(t *testing.T) {
			env := []string{test.env}
			if sentence == "HTTP to host and port" {
				env = append(env, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
			}
			code, stdout, stderr := execute(t, env, "--profiles-dir", "/p")
			if want := "broker: " + test.want + " (see broker --help)\n"; code != 2 || stderr != want || stdout != "" {
				t.Errorf("got %d %q %q\nwant 2 %q", code, stdout, stderr, want)
			}
		})
	}
}

func TestAFlagThatMayHoldAPasswordIsNotQuoted(t *testing.T) {
	for _, args := range [][]string{{"--traces-endpoint", "https://me:secret@collector"}, {"--traces-endpoint=https://me:secret@collector"}} {
		code, stdout, stderr := execute(t, nil, append(args, "--profiles-dir", "/p")...)
		const want = `broker: invalid argument for "--traces-endpoint" flag: expected a URL such as http://collector:4317 or https://collector:4318, without user, query and fragment, or host:port for grpc (see broker --help)` + "\n"
		if code != 2 || stderr != want || stdout != "" {
			t.Errorf("got %d %q %q\nwant 2 %q", code, stdout, stderr, want)
		}
	}
}

func TestHelpNamesTheVariablesOfOpenTelemetry(t *testing.T) {
	_, help, _ := execute(t, nil, "--help")
	for _, name := range []string{
		"--traces-exporter", "OTEL_TRACES_EXPORTER", "--traces-endpoint", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT",
		"--traces-sampler", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "--service-name", "OTEL_SERVICE_NAME", "OTEL_SDK_DISABLED",
		"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER", "OTEL_PROPAGATORS",
	} {
		if !strings.Contains(help, name) {
			t.Errorf("--help does not name %s", name)
		}
	}
}

func TestAFlagForTracesComesBeforeTheVariableForAllSignals(t *testing.T) {
	env := []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317/path"}
	code, _, stderr := execute(t, env, "--profiles-dir", "/p", "--traces-protocol", "grpc")
	if want := `OTEL_EXPORTER_OTLP_ENDPOINT is "http://c:4317/path", but gRPC endpoints have no path`; code != 2 || !strings.Contains(stderr, want) {
		t.Errorf("got %d %q, want 2 %q", code, stderr, want)
	}
}
