// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"

	"google.golang.org/grpc"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// cryptoService is the service cryptobroker.v1.CryptoService.
func (s *Server) cryptoService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: v1.CryptoService_ServiceDesc.ServiceName,
		Metadata:    v1.CryptoService_ServiceDesc.Metadata,
		Methods: []grpc.MethodDesc{
			unary(s, "HashData", engine.HashData, s.hashDataV1),
			unary(s, "SignCertificate", engine.SignCertificate, s.signCertificateV1),
			unary(s, "EncryptData", engine.EncryptData, s.encryptDataV1),
			unary(s, "DecryptData", engine.DecryptData, s.decryptDataV1),
			unary(s, "SignData", engine.SignData, s.signDataV1),
			unary(s, "VerifyData", engine.VerifyData, s.verifyDataV1),
		},
	}
}

func (s *Server) hashDataV1(c *call, request *v1.HashDataRequest) (*v1.HashDataResponse, error) {
	if err := checkMetadata(c.op, request.GetMetadata(), request.GetMetadata().GetTraceContext()); err != nil {
		return nil, err
	}
	raw, err := rawHashV1(c, request.GetOutputFormat())
	if err != nil {
		return nil, err
	}
	var buffer [engine.MaxDigestSize]byte
	digest, algorithm, err := s.hash(c, buffer[:0], request.GetProfile(), request.GetInput())
	if err != nil {
		return nil, err
	}
	return hashReplyV1(c, request.GetProfile(), algorithm, digest, raw), nil
}

// rawHashV1 tells whether a digest is asked for as bytes.
func rawHashV1(c *call, format v1.HashOutputFormat) (bool, error) {
	switch format {
	case v1.HashOutputFormat_HASH_OUTPUT_FORMAT_UNSPECIFIED, v1.HashOutputFormat_HASH_OUTPUT_FORMAT_HEX:
		return false, nil
	case v1.HashOutputFormat_HASH_OUTPUT_FORMAT_RAW:
		return true, nil
	default:
		return false, invalid(c.op, "outputFormat", "is %d, expected 0 or 1 (hex) or 2 (raw)", format)
	}
}

// hashReplyV1 is the reply with a digest. What it is made of is one allocation.
func hashReplyV1(c *call, name, algorithm string, digest []byte, raw bool) *v1.HashDataResponse {
	made := &struct {
		reply      v1.HashDataResponse
		descriptor v1.CryptoDescriptor
		hex        v1.HashDataResponse_HashValueHex
		raw        v1.HashDataResponse_HashValueRaw
	}{}
	made.descriptor.Profile, made.descriptor.Operation, made.descriptor.Algorithm = name, c.op.String(), algorithm
	made.reply.Descriptor_ = &made.descriptor
	if raw {
		made.raw.HashValueRaw = bytes.Clone(digest)
		made.reply.HashValue = &made.raw
	} else {
		made.hex.HashValueHex = hexadecimal(digest)
		made.reply.HashValue = &made.hex
	}
	return &made.reply
}
