// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"
)

func TestSamplersDecideWhichCallsHaveASpan(t *testing.T) {
	const none, unsampled, sampled = "none", "00", "01"
	for sentence, test := range map[string]struct {
		variables []string
		args      []string
		// for calls without a parent, with a parent that is not sampled, and with a sampled parent
		spans map[string]bool
	}{
		"none is named":              {nil, nil, map[string]bool{none: true, unsampled: false, sampled: true}},
		"always_on":                  {[]string{"OTEL_TRACES_SAMPLER=always_on"}, nil, map[string]bool{none: true, unsampled: true, sampled: true}},
		"always_off":                 {[]string{"OTEL_TRACES_SAMPLER=always_off"}, nil, map[string]bool{none: false, unsampled: false, sampled: false}},
		"a ratio of nothing":         {[]string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0"}, nil, map[string]bool{none: false, unsampled: false, sampled: false}},
		"a ratio of all":             {[]string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=1.0"}, nil, map[string]bool{none: true, unsampled: true, sampled: true}},
		"parents, else all":          {[]string{"OTEL_TRACES_SAMPLER=parentbased_always_on"}, nil, map[string]bool{none: true, unsampled: false, sampled: true}},
		"parents, else nothing":      {[]string{"OTEL_TRACES_SAMPLER=parentbased_always_off"}, nil, map[string]bool{none: false, unsampled: false, sampled: true}},
		"parents, else a ratio":      {[]string{"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0"}, nil, map[string]bool{none: false, unsampled: false, sampled: true}},
		"a flag before its variable": {[]string{"OTEL_TRACES_SAMPLER=always_on"}, []string{"--traces-sampler=always_off"}, map[string]bool{none: false, unsampled: false, sampled: false}},
		"a name of released brokers": {[]string{"OTEL_TRACES_SAMPLER=never"}, nil, map[string]bool{none: false, unsampled: false, sampled: false}},
	} {
		t.Run(sentence, func(t *testing.T) {
			to := newSink(t)
			b := startBroker(t, append(test.variables, "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+startCollector(t, to, "").grpc), test.args...)
			conn := b.connect()
			for flags := range test.spans {
				from := traceContext{correlationID: flags}
				if flags != none {
					from.traceID, from.spanID, from.flags = inMessage, spanMessage, flags
				}
				if err := conn.Invoke(t.Context(), "/CryptoBroker.CryptoGrpc/HashData", newCaller(t).hash(from), &emptypb.Empty{}); err != nil {
					t.Fatal(err)
				}
			}
			b.stop()
			got := map[string]bool{none: false, unsampled: false, sampled: false}
			for _, s := range to.receivedSpans() {
				got[s.is("crypto_broker.correlation_id")] = true
			}
			for flags, want := range test.spans {
				if got[flags] != want {
					t.Errorf("parent %s: got a span: %v, want %v", flags, got[flags], want)
				}
			}
		})
	}
}

func TestAPartOfTheTracesIsSampledByTheirIDs(t *testing.T) {
	to := newSink(t)
	b := startBroker(t, []string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.5", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=" + to.URL})
	conn := b.connect()
	// The last seven bytes decide, as in every sampler of OpenTelemetry.
	for id, from := range map[string]string{"sampled": "4bf92f3577b34da60fffffffffffffff", "not": "4bf92f3577b34da6ffffffffffffffff"} {
		if err := conn.Invoke(t.Context(), "/CryptoBroker.CryptoGrpc/HashData", newCaller(t).hash(traceContext{from, spanMessage, "01", "", id}), &emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	b.stop()
	if spans := to.receivedSpans(); len(spans) != 1 || spans[0].is("crypto_broker.correlation_id") != "sampled" {
		t.Errorf("got %+v", spans)
	}
}
