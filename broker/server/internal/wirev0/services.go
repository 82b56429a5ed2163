// SPDX-License-Identifier: Apache-2.0

package wirev0

import (
	"bytes"

	"google.golang.org/grpc"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
)

// adapter turns the messages of the generation into arguments of the handlers.
type adapter struct{ *rpc.Service }

// Services returns the services of the generation.
func Services(s *rpc.Service) []*grpc.ServiceDesc {
	a := adapter{s}
	services := []*grpc.ServiceDesc{a.cryptoGrpc()}
	if s.OffersDevelopment() {
		services = append(services, s.Guarded(a.cryptoGrpcDev()))
	}
	return services
}

// cryptoGrpc returns the service CryptoBroker.CryptoGrpc. Its first releases had the
// development methods as well.
func (a adapter) cryptoGrpc() *grpc.ServiceDesc {
	service := &grpc.ServiceDesc{
		ServiceName: v0.CryptoGrpc_ServiceDesc.ServiceName,
		Metadata:    v0.CryptoGrpc_ServiceDesc.Metadata,
		Methods: []grpc.MethodDesc{
			rpc.Unary(a.Service, "Hash", profile.OpHashData, a.hash),
			rpc.Unary(a.Service, "HashData", profile.OpHashData, a.hashData),
			rpc.Unary(a.Service, "Sign", profile.OpSignCertificate, a.sign),
			rpc.Unary(a.Service, "SignCertificate", profile.OpSignCertificate, a.signCertificate),
			rpc.Unary(a.Service, "EncryptData", profile.OpEncryptData, a.encryptData),
			rpc.Unary(a.Service, "DecryptData", profile.OpDecryptData, a.decryptData),
			rpc.Unary(a.Service, "SignData", profile.OpSignData, a.signData),
			rpc.Unary(a.Service, "VerifyData", profile.OpVerifyData, a.verifyData),
		},
	}
	if a.OffersDevelopment() {
		for _, m := range a.development() {
			m.Handler = a.GuardMethod(requests.MethodName(m.MethodName), m.Handler)
			service.Methods = append(service.Methods, m)
		}
	}
	return service
}

func descriptor(c *handlers.Call, profile, algorithm string) *v0.CryptoDescriptor {
	return &v0.CryptoDescriptor{Profile: profile, Operation: c.Operation.String(), Algorithm: algorithm}
}

func (a adapter) hash(c *handlers.Call, request *v0.HashRequest) (*v0.HashResponse, error) {
	var buffer [engine.MaxDigestSize]byte
	digest, algorithm, err := a.Hash(c, buffer[:0], request.GetProfile(), request.GetInput())
	if err != nil {
		return nil, err
	}
	return &v0.HashResponse{HashValue: handlers.Hexadecimal(digest), HashAlgorithm: algorithm}, nil
}

func (a adapter) hashData(c *handlers.Call, request *v0.HashDataRequest) (*v0.HashDataResponse, error) {
	raw := request.GetOutputFormat() == v0.HashOutputFormat_HASH_OUTPUT_FORMAT_RAW
	if !raw && request.GetOutputFormat() != v0.HashOutputFormat_HASH_OUTPUT_FORMAT_HEX {
		return nil, requests.Invalid(c.Operation, "outputFormat", "is %d, expected 0 (hex) or 1 (raw)", request.GetOutputFormat())
	}
	var buffer [engine.MaxDigestSize]byte
	digest, algorithm, err := a.Hash(c, buffer[:0], request.GetProfile(), request.GetInput())
	if err != nil {
		return nil, err
	}
	reply := &v0.HashDataResponse{HashAlgorithm: algorithm, Descriptor_: descriptor(c, request.GetProfile(), algorithm)}
	if raw {
		reply.HashValue = &v0.HashDataResponse_HashValueRaw{HashValueRaw: bytes.Clone(digest)}
	} else {
		reply.HashValue = &v0.HashDataResponse_HashValueHex{HashValueHex: handlers.Hexadecimal(digest)}
	}
	return reply, nil
}
