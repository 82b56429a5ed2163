// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

const (
	inMessage, inHeader     = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
	spanMessage, spanHeader = "00f067aa0ba902b7", "b7ad6b7169203331"
)

func TestTheParentIsTheOneThatIsNamed(t *testing.T) {
	for sentence, test := range map[string]struct {
		message       traceContext
		traceparent   string
		variable      string
		trace, parent string // empty for a trace of its own
	}{
		"in the message":                                           {message: traceContext{inMessage, spanMessage, "01", "", ""}, trace: inMessage, parent: spanMessage},
		"in the message, without flags":                            {message: traceContext{inMessage, spanMessage, "", "", ""}, trace: inMessage, parent: spanMessage},
		"in gRPC's metadata":                                       {traceparent: "00-" + inHeader + "-" + spanHeader + "-01", trace: inHeader, parent: spanHeader},
		"in both: that in the message":                             {message: traceContext{inMessage, spanMessage, "01", "", ""}, traceparent: "00-" + inHeader + "-" + spanHeader + "-01", trace: inMessage, parent: spanMessage},
		"none in the message, for it is malformed":                 {message: traceContext{inMessage, "tomorrow", "01", "", ""}},
		"in gRPC's metadata, for that in the message is malformed": {message: traceContext{"0", "0", "01", "", ""}, traceparent: "00-" + inHeader + "-" + spanHeader + "-01", trace: inHeader, parent: spanHeader},
		"none, for gRPC's metadata is malformed":                   {traceparent: "00-" + inHeader + "-0000000000000000-01"},
		"none, for both are zero":                                  {message: traceContext{"00000000000000000000000000000000", "0000000000000000", "01", "", ""}},
		"none, for flags are no flags":                             {message: traceContext{inMessage, spanMessage, "yes", "", ""}},
		"in the message, whose state is malformed":                 {message: traceContext{inMessage, spanMessage, "01", "=,=", ""}, trace: inMessage, parent: spanMessage},
		"none, for there is none":                                  {},
		"none, for callers' traces are not continued":              {message: traceContext{inMessage, spanMessage, "01", "", ""}, traceparent: "00-" + inHeader + "-" + spanHeader + "-01", variable: "OTEL_PROPAGATORS=none"},
	} {
		t.Run(sentence, func(t *testing.T) {
			to := newSink(t)
			b := startBroker(t, []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=" + to.URL, test.variable})
			ctx := t.Context()
			if test.traceparent != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", test.traceparent)
			}
			if err := b.connect().Invoke(ctx, "/CryptoBroker.CryptoGrpc/HashData", newCaller(t).hash(test.message), &emptypb.Empty{}); err != nil {
				t.Fatal(err)
			}
			b.stop()
			spans := to.receivedSpans()
			if len(spans) != 1 {
				t.Fatalf("got %d spans, want 1", len(spans))
			}
			s := spans[0]
			if s.ParentSpanID != test.parent || (test.trace != "" && s.TraceID != test.trace) || (test.trace == "" && (s.TraceID == inMessage || s.TraceID == inHeader || len(s.TraceID) != 32)) {
				t.Errorf("got trace %s, parent %q, want %q, %q", s.TraceID, s.ParentSpanID, test.trace, test.parent)
			}
		})
	}
}

func TestASpanTellsHowACallEnded(t *testing.T) {
	to := newSink(t)
	b := startBroker(t, []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=" + to.URL, "OTEL_BSP_SCHEDULE_DELAY=50"})
	conn := b.connect()
	for _, test := range []struct {
		sentence string
		method   string
		request  *v1.HashDataRequest
		code     codes.Code
		profile  string
		fault    int
	}{
		{"a profile that is not served is not named", "HashData", &v1.HashDataRequest{Profile: "Secret"}, codes.InvalidArgument, "", 0},
		{"a caller that the profile does not allow", "HashData", &v1.HashDataRequest{Profile: "Operators"}, codes.PermissionDenied, "Operators", 0},
		{"an input that is none", "EncryptData", &v1.HashDataRequest{Profile: "Default"}, codes.InvalidArgument, "", 0},
	} {
		before := len(to.receivedSpans())
		err := conn.Invoke(t.Context(), "/cryptobroker.v1.CryptoService/"+test.method, test.request, &emptypb.Empty{})
		if status.Code(err) != test.code {
			t.Fatalf("%s: %v", test.sentence, err)
		}
		s := to.wait(t, before+1)[before]
		if s.is("crypto_broker.profile") != test.profile || s.Status.Code != test.fault || s.Status.Message != "" || len(s.is("rpc.grpc.status_code")) == 0 {
			t.Errorf("%s: %+v", test.sentence, s)
		}
	}
}

func TestCallsThatTheBrokerIsToBlameForAreErrors(t *testing.T) {
	to := newSink(t)
	b := startBroker(t, []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=" + to.URL}, "--profiles-dir", t.TempDir())
	err := b.connect().Invoke(t.Context(), "/cryptobroker.v1.CryptoService/HashData", newCaller(t).hash(traceContext{}), &emptypb.Empty{})
	if status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	b.stop()
	if spans := to.receivedSpans(); len(spans) != 1 || spans[0].Status.Code != statusError || spans[0].is("rpc.grpc.status_code") != "14" {
		t.Errorf("got %+v", spans)
	}
}
