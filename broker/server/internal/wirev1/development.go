// SPDX-License-Identifier: Apache-2.0

package wirev1

import (
	"context"

	"google.golang.org/grpc"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
)

// cryptoDevService returns the service cryptobroker.v1.CryptoDevService.
func (a Adapter) cryptoDevService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: v1.CryptoDevService_ServiceDesc.ServiceName,
		Metadata:    v1.CryptoDevService_ServiceDesc.Metadata,
		Methods: []grpc.MethodDesc{
			rpc.PlainUnary("Benchmark", func(ctx context.Context, request *v1.BenchmarkRequest) (*v1.BenchmarkResponse, error) {
				if err := requests.CheckMetadata(requests.MethodName("Benchmark"), request.GetMetadata()); err != nil {
					return nil, err
				}
				results, err := a.Benchmark(ctx)
				return &v1.BenchmarkResponse{BenchmarkResults: results}, err
			}),
			rpc.PlainUnary("FakeEndpoint", func(_ context.Context, request *v1.FakeEndpointRequest) (*v1.FakeEndpointResponse, error) {
				err := requests.CheckMetadata(requests.MethodName("FakeEndpoint"), request.GetMetadata())
				return &v1.FakeEndpointResponse{Message: handlers.NothingDone}, err
			}),
		},
	}
}
