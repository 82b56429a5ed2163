// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"crypto/sha256"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// kindServer and kindError are the numbers that OTLP has for them.
const kindServer, statusError = 2, 2

// made describes the span that a call should have.
type made struct{ name, operation, algorithm string }

// contextOf is the trace context of the n-th call, with ids of its own.
func contextOf(n int) traceContext {
	return traceContext{
		traceID: fmt.Sprintf("%032x", 0xabc000+n), spanID: fmt.Sprintf("%016x", 0xdef000+n), flags: "01",
		state: "vendor=value", correlationID: fmt.Sprintf("call %d", n),
	}
}

func TestEachOperationOfEachGenerationHasASpan(t *testing.T) {
	for sentence, variables := range map[string]func(*collector) []string{
		"over gRPC": func(c *collector) []string {
			return []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.grpc}
		},
		"over gRPC, compressed, by the names of released brokers": func(c *collector) []string {
			return []string{"OTEL_TRACES_EXPORTER=otlpgrpc", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.grpc, "OTEL_EXPORTER_OTLP_COMPRESSION=gzip"}
		},
		"over HTTP, where only an endpoint is set": func(c *collector) []string {
			return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.http}
		},
		"over HTTP, compressed, by the names of released brokers": func(c *collector) []string {
			return []string{"OTEL_TRACES_EXPORTER=otlphttp", "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.http, "OTEL_EXPORTER_OTLP_COMPRESSION=gzip"}
		},
		"over HTTP in JSON": func(c *collector) []string {
			return []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://" + c.http + "/v1/traces"}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			to := newSink(t)
			b := startBroker(t, variables(startCollector(t, to, "")))
			calls := callEverything(t, b)
			b.stop()
			check(t, to, calls)
		})
	}
}

// callEverything makes calls with the trace contexts contextOf(0), contextOf(1), …
func callEverything(t *testing.T, b *broker) []made {
	t.Helper()
	conn, with := b.connect(), newCaller(t)
	var calls []made
	next := func(call made) traceContext {
		calls = append(calls, call)
		return contextOf(len(calls) - 1)
	}
	invoke := func(method, operation, algorithm string, request func(traceContext) proto.Message, reply proto.Message) {
		t.Helper()
		if err := conn.Invoke(t.Context(), "/"+method, request(next(made{method, operation, algorithm})), reply); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	const first, version1 = "CryptoBroker.CryptoGrpc/", "cryptobroker.v1.CryptoService/"
	for _, method := range []string{first + "Hash", first + "HashData", version1 + "HashData"} {
		invoke(method, "HashData", "sha-256", func(from traceContext) proto.Message { return with.hash(from) }, &emptypb.Empty{})
	}
	for _, method := range []string{first + "Sign", first + "SignCertificate", version1 + "SignCertificate"} {
		invoke(method, "SignCertificate", "ecdsa-with-SHA256", func(from traceContext) proto.Message { return with.certify(from) }, &emptypb.Empty{})
	}
	var sealed v1.EncryptDataResponse
	var signed v1.SignDataResponse
	for _, service := range []string{first, version1} {
		invoke(service+"EncryptData", "EncryptData", "aes-gcm", func(from traceContext) proto.Message { return with.encrypt(from) }, &sealed)
		invoke(service+"DecryptData", "DecryptData", "aes-gcm", func(from traceContext) proto.Message { return with.decrypt(from, &sealed) }, &emptypb.Empty{})
		invoke(service+"SignData", "SignData", "ecdsa-with-sha-256", func(from traceContext) proto.Message { return with.sign(from) }, &signed)
		invoke(service+"VerifyData", "VerifyData", "ecdsa-with-sha-256", func(from traceContext) proto.Message { return with.verify(from, signed.GetSignature()) }, &emptypb.Empty{})
	}

	const stream = "cryptobroker.stream.v1.StreamService/"
	streams := streamv1.NewStreamServiceClient(conn)
	hashing, err := streams.HashStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begin := &streamv1.HashStreamStart{Profile: "Default", Metadata: next(made{stream + "HashStream", "HashData", "sha-256"}).v1()}
	for _, part := range []*streamv1.HashStreamRequest{
		{Part: &streamv1.HashStreamRequest_Start{Start: begin}},
		{Part: &streamv1.HashStreamRequest_Chunk{Chunk: []byte(secretInput)}},
	} {
		if err := hashing.Send(part); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := hashing.CloseAndRecv(); err != nil {
		t.Fatal(err)
	}

	exchange, err := streams.Exchange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batched := func(operation, algorithm string) traceContext {
		return next(made{stream + "Exchange " + operation, operation, algorithm})
	}
	batch := []*streamv1.Call{
		{Request: &streamv1.Call_HashData{HashData: with.hash(batched("HashData", "sha-256"))}},
		{Request: &streamv1.Call_SignCertificate{SignCertificate: with.certify(batched("SignCertificate", "ecdsa-with-SHA256"))}},
		{Request: &streamv1.Call_EncryptData{EncryptData: with.encrypt(batched("EncryptData", "aes-gcm"))}},
		{Request: &streamv1.Call_DecryptData{DecryptData: with.decrypt(batched("DecryptData", "aes-gcm"), &sealed)}},
		{Request: &streamv1.Call_SignData{SignData: with.sign(batched("SignData", "ecdsa-with-sha-256"))}},
		{Request: &streamv1.Call_VerifyData{VerifyData: with.verify(batched("VerifyData", "ecdsa-with-sha-256"), signed.GetSignature())}},
	}
	for i, call := range batch {
		call.Id = uint64(i)
	}
	if err := exchange.Send(&streamv1.ExchangeRequest{Calls: batch}); err != nil {
		t.Fatal(err)
	}
	if err := exchange.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for replies := 0; replies < len(batch); {
		got, err := exchange.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, reply := range got.GetReplies() {
			if failed := reply.GetStatus(); failed != nil {
				t.Fatalf("call %d: %v", reply.GetId(), failed)
			}
			replies++
		}
	}
	return calls
}

// check compares spans with the calls that they should belong to.
func check(t *testing.T, to *sink, calls []made) {
	t.Helper()
	spans := map[string]span{}
	for _, s := range to.receivedSpans() {
		spans[s.TraceID] = s
	}
	if len(to.receivedSpans()) != len(calls) {
		t.Errorf("got %d spans, want %d", len(to.receivedSpans()), len(calls))
	}
	for i, call := range calls {
		from := contextOf(i)
		s, found := spans[from.traceID]
		if !found {
			t.Errorf("%s has no span", call.name)
			continue
		}
		service, method, _ := strings.Cut(call.name, "/")
		method, _, _ = strings.Cut(method, " ")
		for what, got := range map[string][2]string{
			"name":           {s.Name, call.name},
			"parent":         {s.ParentSpanID, from.spanID},
			"trace state":    {s.TraceState, from.state},
			"system":         {s.is("rpc.system"), "grpc"},
			"service":        {s.is("rpc.service"), service},
			"method":         {s.is("rpc.method"), method},
			"code":           {s.is("rpc.grpc.status_code"), "0"},
			"transport":      {s.is("network.transport"), "unix"},
			"operation":      {s.is("crypto_broker.operation"), call.operation},
			"profile":        {s.is("crypto_broker.profile"), "Default"},
			"algorithm":      {s.is("crypto_broker.algorithm"), call.algorithm},
			"caller":         {s.is("crypto_broker.caller.container"), "app"},
			"correlation id": {s.is("crypto_broker.correlation_id"), from.correlationID},
			"service.name":   {fmt.Sprint(s.resource["service.name"]), "crypto-broker-server"},
			"version":        {fmt.Sprint(s.resource["service.version"]), "v1.2.3"},
		} {
			if got[0] != got[1] {
				t.Errorf("%s: the %s is %q, want %q", call.name, what, got[0], got[1])
			}
		}
		if s.Kind != kindServer || s.Status.Code != 0 || s.StartTimeUnixNano == "" || s.EndTimeUnixNano <= s.StartTimeUnixNano {
			t.Errorf("%s: %+v", call.name, s)
		}
	}
	checkSecrets(t, to)
}

// checkSecrets searches the exported spans for content of requests and replies.
func checkSecrets(t *testing.T, to *sink) {
	t.Helper()
	digest := sha256.Sum256([]byte(secretInput))
	exported := strings.ToLower(to.bodies.String())
	for _, secret := range []string{
		secretInput, secretKey, secretNonce, secretSubject, "A Subject", "An Authority", "BEGIN", string(digest[:]),
	} {
		for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawStdEncoding.EncodeToString([]byte(secret))} {
			if strings.Contains(exported, strings.ToLower(form)) {
				t.Errorf("what was exported has %q in it", form)
			}
		}
	}
}
