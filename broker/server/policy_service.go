// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"google.golang.org/grpc"

	policyv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/policy/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/served"
)

// policyService returns the service cryptobroker.policy.v1.PolicyService.
func policyService(s *rpc.Service) *grpc.ServiceDesc {
	list := func(ctx context.Context, request *policyv1.ListProfilesRequest) (*policyv1.ListProfilesResponse, error) {
		return served.ListProfiles(ctx, s.Served.Load(), request)
	}
	return &grpc.ServiceDesc{
		ServiceName: policyv1.PolicyService_ServiceDesc.ServiceName,
		Metadata:    policyv1.PolicyService_ServiceDesc.Metadata,
		Methods:     []grpc.MethodDesc{rpc.PlainUnary(string(served.ListProfilesMethod), list)},
	}
}
