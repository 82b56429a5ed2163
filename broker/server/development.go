// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// WithDevelopmentService offers Benchmark and FakeEndpoint, which cost the broker
// time and have no place where others depend on it. Without it, calls of them
// are answered with UNIMPLEMENTED.
func WithDevelopmentService() Option {
	return func(s *Server) { s.development = make(chan struct{}, 1) }
}

// maxBenchmarkTime bounds a measurement and the wait for the one before it.
const maxBenchmarkTime = 5 * time.Second

// nothing is what FakeEndpoint says.
const nothing = "nothing was done"

// developmentV0 are the methods of the releases before version 1.
func (s *Server) developmentV0() []grpc.MethodDesc {
	return []grpc.MethodDesc{
		described("Benchmark", func(ctx context.Context, request *v0.BenchmarkRequest) (*v0.BenchmarkResponse, error) {
			if err := checkMetadata(method("Benchmark"), request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
				return nil, err
			}
			results, err := s.benchmark(ctx)
			return &v0.BenchmarkResponse{BenchmarkResults: results}, err
		}),
		described("FakeEndpoint", func(_ context.Context, request *v0.FakeEndpointRequest) (*v0.FakeEndpointResponse, error) {
			err := checkMetadata(method("FakeEndpoint"), request.GetMetadata(), request.GetMetadata().GetTraceContext())
			return &v0.FakeEndpointResponse{Message: nothing}, err
		}),
	}
}

// cryptoGrpcDev is the service CryptoBroker.CryptoGrpcDev.
func (s *Server) cryptoGrpcDev() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: v0.CryptoGrpcDev_ServiceDesc.ServiceName,
		Metadata:    v0.CryptoGrpcDev_ServiceDesc.Metadata,
		Methods:     s.developmentV0(),
	}
}

// cryptoDevService is the service cryptobroker.v1.CryptoDevService.
func (s *Server) cryptoDevService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: v1.CryptoDevService_ServiceDesc.ServiceName,
		Metadata:    v1.CryptoDevService_ServiceDesc.Metadata,
		Methods: []grpc.MethodDesc{
			described("Benchmark", func(ctx context.Context, request *v1.BenchmarkRequest) (*v1.BenchmarkResponse, error) {
				if err := checkMetadata(method("Benchmark"), request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
					return nil, err
				}
				results, err := s.benchmark(ctx)
				return &v1.BenchmarkResponse{BenchmarkResults: results}, err
			}),
			described("FakeEndpoint", func(_ context.Context, request *v1.FakeEndpointRequest) (*v1.FakeEndpointResponse, error) {
				err := checkMetadata(method("FakeEndpoint"), request.GetMetadata(), request.GetMetadata().GetTraceContext())
				return &v1.FakeEndpointResponse{Message: nothing}, err
			}),
		},
	}
}

// benchmark measures the operations and returns the times as JSON. Several at
// once would measure each other, so they wait for each other.
func (s *Server) benchmark(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxBenchmarkTime)
	defer cancel()
	var measured []engine.Measurement
	var err error
	select {
	case s.development <- struct{}{}:
		func() {
			defer func() { <-s.development }() // a defect holds up no later measurement
			measured, err = engine.Benchmark(ctx)
		}()
	case <-ctx.Done():
		err = ctx.Err()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "", status.Error(codes.Canceled, "Benchmark: the call ended before the measurement did")
	case errors.Is(err, context.DeadlineExceeded):
		return "", status.Errorf(codes.DeadlineExceeded, "Benchmark: the measurement did not end within %s or the time that the call has", maxBenchmarkTime)
	case err != nil:
		s.logger.ErrorContext(ctx, "a measurement failed", "error", err)
		return "", status.Error(codes.Internal, "Benchmark: failed for a reason inside the broker, whose log has it")
	}
	type result struct {
		Name string `json:"name"`
		Time int64  `json:"avgTime"` // nanoseconds
	}
	text := struct {
		Results []result `json:"results"`
	}{}
	for _, m := range measured {
		text.Results = append(text.Results, result{m.Name, m.Average.Nanoseconds()})
	}
	encoded, err := json.Marshal(text)
	if err != nil {
		return "", err
	}
	return string(encoded), nil
}
