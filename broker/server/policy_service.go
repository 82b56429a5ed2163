// SPDX-License-Identifier: Apache-2.0

package server

import (
	"google.golang.org/grpc"

	policyv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/policy/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
)

// policyService returns the service cryptobroker.policy.v1.PolicyService.
func policyService(s *rpc.Service) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: policyv1.PolicyService_ServiceDesc.ServiceName,
		Metadata:    policyv1.PolicyService_ServiceDesc.Metadata,
		Methods:     []grpc.MethodDesc{rpc.PlainUnary(string(handlers.ListProfilesMethod), s.ListProfiles)},
	}
}
