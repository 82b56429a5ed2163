// SPDX-License-Identifier: Apache-2.0

package wirev0

import (
	"context"

	"google.golang.org/grpc"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
)

// development returns Benchmark and FakeEndpoint.
func (a adapter) development() []grpc.MethodDesc {
	return []grpc.MethodDesc{
		rpc.PlainUnary("Benchmark", func(ctx context.Context, request *v0.BenchmarkRequest) (*v0.BenchmarkResponse, error) {
			if err := requests.CheckMetadata(requests.MethodName("Benchmark"), request.GetMetadata()); err != nil {
				return nil, err
			}
			results, err := a.Benchmark(ctx)
			return &v0.BenchmarkResponse{BenchmarkResults: results}, err
		}),
		rpc.PlainUnary("FakeEndpoint", func(_ context.Context, request *v0.FakeEndpointRequest) (*v0.FakeEndpointResponse, error) {
			err := requests.CheckMetadata(requests.MethodName("FakeEndpoint"), request.GetMetadata())
			return &v0.FakeEndpointResponse{Message: handlers.NothingDone}, err
		}),
	}
}

// cryptoGrpcDev returns the service CryptoBroker.CryptoGrpcDev.
func (a adapter) cryptoGrpcDev() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: v0.CryptoGrpcDev_ServiceDesc.ServiceName,
		Metadata:    v0.CryptoGrpcDev_ServiceDesc.Metadata,
		Methods:     a.development(),
	}
}
