// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

func TestCallsHaveSpansWhereThereIsATracer(t *testing.T) {
	var out bytes.Buffer
	config := tracing.NewConfig()
	for _, v := range config.Variables() {
		if v.Name == "OTEL_TRACES_EXPORTER" {
			if err := v.Set("console"); err != nil {
				t.Fatal(err)
			}
		}
	}
	tracer, err := tracing.New(t.Context(), config, tracing.Options{Version: "test", Stdout: &out, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	broker := startWith(t, "- Name: Default\n  API: {HashData: {HashAlg: sha-256}}\n", []string{"app"}, server.WithTracer(tracer))
	conn := connect(t, broker.socket("app"))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	request := &v1.HashDataRequest{Profile: "Default", Input: []byte("x")}
	if _, err := v1.NewCryptoServiceClient(conn).HashData(ctx, request); err != nil {
		t.Fatal(err)
	}
	stream, err := streamv1.NewStreamServiceClient(conn).Exchange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	large := &v1.HashDataRequest{Profile: "Default", Input: make([]byte, 1<<17)} // for the workers
	calls := []*streamv1.Call{{Id: 1, Request: &streamv1.Call_HashData{HashData: request}}, {Id: 2, Request: &streamv1.Call_HashData{HashData: large}}}
	if err := stream.Send(&streamv1.ExchangeRequest{Calls: calls}); err != nil {
		t.Fatal(err)
	}
	for replies := 0; replies < len(calls); {
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		replies += len(got.GetReplies())
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := tracer.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var span struct {
			Name   string
			Parent struct{ SpanID string }
		}
		if err := json.Unmarshal([]byte(line), &span); err != nil {
			t.Fatal(err)
		}
		names[span.Name+" of "+span.Parent.SpanID]++
		for _, want := range []string{`"Default"`, `"sha-256"`, `"app"`, `"HashData"`} {
			if !strings.Contains(line, want) {
				t.Errorf("the span has no %s: %s", want, line)
			}
		}
	}
	if names["cryptobroker.v1.CryptoService/HashData of 00f067aa0ba902b7"] != 1 || names["cryptobroker.stream.v1.StreamService/Exchange HashData of 0000000000000000"] != 2 || len(names) != 2 {
		t.Errorf("got %v", names)
	}
}
