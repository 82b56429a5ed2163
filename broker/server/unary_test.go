// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

func TestADefectFailsOneRequestAndKeepsItsInputOutOfTheLog(t *testing.T) {
	for sentence, test := range map[string]struct {
		fault func(input []byte)
		cause string
	}{
		"a defect that Go found": {
			func(input []byte) { beyond := len(input); _ = input[beyond] },
			"index out of range",
		},
		"a defect that quotes the input": {
			func(input []byte) { panic("cannot hash " + string(input)) },
			"cause=string",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var log strings.Builder
			s := New(slog.New(slog.NewTextHandler(&log, nil)), telemetry.NewMetrics("test"))
			defer s.endStreams()
			defer s.grpc.Stop()
			method := unary(s, "Hash", engine.HashData, func(_ *call, request *v0.HashRequest) (*v0.HashResponse, error) {
				test.fault(request.GetInput())
				return &v0.HashResponse{}, nil
			})
			decode := func(v any) error {
				v.(*envelope).message.(*v0.HashRequest).Input = []byte("a secret")
				return nil
			}
			_, err := method.Handler(nil, context.Background(), decode, nil)
			if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want Internal without the input", err)
			}
			if got := log.String(); strings.Contains(got, "a secret") || !strings.Contains(got, test.cause) || !strings.Contains(got, "unary_test.go") {
				t.Errorf("log %q, want the cause %q and the stack, without the input", got, test.cause)
			}
		})
	}
}

func TestADefectInAServiceOfGRPCFailsOneCall(t *testing.T) {
	s := New(slog.New(slog.DiscardHandler), telemetry.NewMetrics("test"))
	defer s.endStreams()
	defer s.grpc.Stop()
	_, err := s.recoverUnary(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "/x/Y"}, func(context.Context, any) (any, error) { panic(1) })
	if status.Code(err) != codes.Internal {
		t.Errorf("unary: got %v, want Internal", err)
	}
	err = s.boundStream(nil, boundedStream{ctx: context.Background()}, &grpc.StreamServerInfo{FullMethod: "/x/Y"}, func(any, grpc.ServerStream) error { panic(1) })
	if status.Code(err) != codes.Internal {
		t.Errorf("stream: got %v, want Internal", err)
	}
}
