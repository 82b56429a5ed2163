// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

func TestSpansGoWhereTheVariablesSay(t *testing.T) {
	for sentence, test := range map[string]struct {
		variables []string
		want      []string // none if traces are off
	}{
		"nothing is set":                            {nil, nil},
		"none is said":                              {[]string{"OTEL_TRACES_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"}, nil},
		"it is disabled":                            {[]string{"OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=otlp"}, nil},
		"an exporter alone":                         {[]string{"OTEL_TRACES_EXPORTER=otlp"}, []string{"otlp http/protobuf http://localhost:4318/v1/traces"}},
		"an exporter with a protocol":               {[]string{"OTEL_TRACES_EXPORTER=OTLP", "OTEL_EXPORTER_OTLP_PROTOCOL=gRPC"}, []string{"otlp grpc localhost:4317"}},
		"an endpoint alone":                         {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"}, []string{"otlp http/protobuf http://c:4318/v1/traces"}},
		"an endpoint with a path":                   {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://c/api/otlp/"}, []string{"otlp http/protobuf https://c/api/otlp/v1/traces"}},
		"an endpoint that has it all":               {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://c/api/v1/traces"}, []string{"otlp http/protobuf https://c/api/v1/traces"}},
		"an endpoint for traces, as it is":          {[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:4318/spans", "OTEL_EXPORTER_OTLP_ENDPOINT=http://other"}, []string{"otlp http/protobuf http://c:4318/spans"}},
		"a protocol for traces":                     {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"}, []string{"otlp grpc c:4317"}},
		"a URL of a host alone":                     {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, []string{"otlp grpc c:4317"}},
		"a socket":                                  {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=unix:///run/c.sock", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, []string{"otlp grpc unix:///run/c.sock"}},
		"host and port, as released brokers had it": {[]string{"OTEL_TRACES_EXPORTER=console, otlpgrpc", "OTEL_EXPORTER_OTLP_ENDPOINT=c:4317"}, []string{"console", "otlpgrpc grpc c:4317"}},
		"host and port without a protocol":          {[]string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT=c:4317"}, []string{"otlp grpc c:4317"}},
		"the two of released brokers":               {[]string{"OTEL_TRACES_EXPORTER=otlphttp,otlpgrpc", "OTEL_EXPORTER_OTLP_ENDPOINT=https://c:4318"}, []string{"otlpgrpc grpc c:4318", "otlphttp http/protobuf https://c:4318/v1/traces"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := configure(t, test.variables...)
			if c.Enabled() != (test.want != nil) {
				t.Errorf("enabled: %v", c.Enabled())
			}
			if diff := cmp.Diff(test.want, c.Targets()); c.Enabled() && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVariablesThatDoNotFitAreRefused(t *testing.T) {
	for sentence, test := range map[string]struct {
		variables []string
		want      string
	}{
		"a path for gRPC":              {[]string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317/v1/traces"}, `OTEL_EXPORTER_OTLP_ENDPOINT is "http://c:4317/v1/traces", but gRPC endpoints have no path: expected a host and a port`},
		"a socket for HTTP":            {[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=unix:///run/c.sock"}, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is "unix:///run/c.sock", but OTLP over HTTP needs a URL that begins with http:// or https://`},
		"certificates and no TLS":      {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca.crt"}, "certificates for the collector are set, but its endpoint has no TLS: expected an endpoint that begins with https://"},
		"certificates and no endpoint": {[]string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca.crt"}, "certificates for the collector are set, but its endpoint has no TLS: expected an endpoint that begins with https://"},
		"authorities and no TLS":       {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "CRYPTO_BROKER_TRACES_AUTHORITIES=PEM"}, "certificates for the collector are set, but its endpoint has no TLS: expected an endpoint that begins with https://"},
		"authorities and a file":       {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://c", "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca.crt", "CRYPTO_BROKER_TRACES_AUTHORITIES=PEM"}, "OTEL_EXPORTER_OTLP_CERTIFICATE and CRYPTO_BROKER_TRACES_AUTHORITIES: found both, expected only one of the two"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := tracing.NewConfig()
			for _, v := range c.Variables() {
				for _, variable := range test.variables {
					if value, is := strings.CutPrefix(variable, v.Name+"="); is {
						if err := v.Set(value); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if err := c.Check(); err == nil || err.Error() != test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestAuthoritiesThatAreNoneAreAnErrorAtStart(t *testing.T) {
	_, err := tracing.New(t.Context(), configure(t, "OTEL_EXPORTER_OTLP_ENDPOINT=https://c", "CRYPTO_BROKER_TRACES_AUTHORITIES=secret"), tracing.Options{})
	if want := "set up the export of spans: read the certificate authorities of the collector: CRYPTO_BROKER_TRACES_AUTHORITIES has no certificate in PEM"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestAFileThatIsNoneIsAnErrorAtStart(t *testing.T) {
	_, err := tracing.New(t.Context(), configure(t, "OTEL_EXPORTER_OTLP_ENDPOINT=https://c", "OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere.crt"), tracing.Options{})
	if want := "set up the export of spans: read OTEL_EXPORTER_OTLP_CERTIFICATE: stat /nowhere.crt: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
