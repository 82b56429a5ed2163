// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"

	"google.golang.org/grpc"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// cryptoGrpc is the service CryptoBroker.CryptoGrpc of the releases before
// version 1.
func (s *Server) cryptoGrpc() *grpc.ServiceDesc {
	service := &grpc.ServiceDesc{
		ServiceName: v0.CryptoGrpc_ServiceDesc.ServiceName,
		Metadata:    v0.CryptoGrpc_ServiceDesc.Metadata,
		Methods: []grpc.MethodDesc{
			unary(s, "Hash", engine.HashData, s.hashV0),
			unary(s, "HashData", engine.HashData, s.hashDataV0),
			unary(s, "Sign", engine.SignCertificate, s.signV0),
			unary(s, "SignCertificate", engine.SignCertificate, s.signCertificateV0),
			unary(s, "EncryptData", engine.EncryptData, s.encryptDataV0),
			unary(s, "DecryptData", engine.DecryptData, s.decryptDataV0),
			unary(s, "SignData", engine.SignData, s.signDataV0),
			unary(s, "VerifyData", engine.VerifyData, s.verifyDataV0),
		},
	}
	if s.development != nil {
		for _, m := range s.developmentV0() {
			m.Handler = guard{s}.method(method(m.MethodName), m.Handler)
			service.Methods = append(service.Methods, m)
		}
	}
	return service
}

func (s *Server) hashV0(c *call, request *v0.HashRequest) (*v0.HashResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	var buffer [engine.MaxDigestSize]byte
	digest, algorithm, err := s.hash(c, buffer[:0], request.GetProfile(), request.GetInput())
	if err != nil {
		return nil, err
	}
	return &v0.HashResponse{HashValue: hexadecimal(digest), HashAlgorithm: algorithm}, nil
}

func (s *Server) hashDataV0(c *call, request *v0.HashDataRequest) (*v0.HashDataResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	raw := request.GetOutputFormat() == v0.HashOutputFormat_HASH_OUTPUT_FORMAT_RAW
	if !raw && request.GetOutputFormat() != v0.HashOutputFormat_HASH_OUTPUT_FORMAT_HEX {
		return nil, invalid(c.op, "outputFormat", "is %d, expected 0 (hex) or 1 (raw)", request.GetOutputFormat())
	}
	var buffer [engine.MaxDigestSize]byte
	digest, algorithm, err := s.hash(c, buffer[:0], request.GetProfile(), request.GetInput())
	if err != nil {
		return nil, err
	}
	reply := &v0.HashDataResponse{
		HashAlgorithm: algorithm,
		Descriptor_: &v0.CryptoDescriptor{
			Profile: request.GetProfile(), Operation: c.op.String(), Algorithm: algorithm,
		},
	}
	if raw {
		reply.HashValue = &v0.HashDataResponse_HashValueRaw{HashValueRaw: bytes.Clone(digest)}
	} else {
		reply.HashValue = &v0.HashDataResponse_HashValueHex{HashValueHex: hexadecimal(digest)}
	}
	return reply, nil
}
