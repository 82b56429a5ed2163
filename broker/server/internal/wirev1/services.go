// SPDX-License-Identifier: Apache-2.0

package wirev1

import (
	"bytes"

	"google.golang.org/grpc"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
)

// Adapter turns the messages of the generation into arguments of the handlers.
type Adapter struct{ *rpc.Service }

// Services returns the services of the generation.
func Services(s *rpc.Service) []*grpc.ServiceDesc {
	a := Adapter{s}
	services := []*grpc.ServiceDesc{a.cryptoService()}
	if s.OffersDevelopment() {
		services = append(services, s.Guarded(a.cryptoDevService()))
	}
	return services
}

// cryptoService is the service cryptobroker.v1.CryptoService.
func (a Adapter) cryptoService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: v1.CryptoService_ServiceDesc.ServiceName,
		Metadata:    v1.CryptoService_ServiceDesc.Metadata,
		Methods: []grpc.MethodDesc{
			rpc.Unary(a.Service, "HashData", engine.HashData, a.HashData),
			rpc.Unary(a.Service, "SignCertificate", engine.SignCertificate, a.SignCertificate),
			rpc.Unary(a.Service, "EncryptData", engine.EncryptData, a.EncryptData),
			rpc.Unary(a.Service, "DecryptData", engine.DecryptData, a.DecryptData),
			rpc.Unary(a.Service, "SignData", engine.SignData, a.SignData),
			rpc.Unary(a.Service, "VerifyData", engine.VerifyData, a.VerifyData),
		},
	}
}

// HashData serves the method of the same name.
func (a Adapter) HashData(c *handlers.Call, request *v1.HashDataRequest) (*v1.HashDataResponse, error) {
	if err := requests.CheckMetadata(c.Operation, request.GetMetadata()); err != nil {
		return nil, err
	}
	raw, err := RawHash(c, request.GetOutputFormat())
	if err != nil {
		return nil, err
	}
	var buffer [engine.MaxDigestSize]byte
	digest, algorithm, err := a.Hash(c, buffer[:0], request.GetProfile(), request.GetInput())
	if err != nil {
		return nil, err
	}
	return HashReply(c, request.GetProfile(), algorithm, digest, raw), nil
}

// RawHash reports whether a digest is asked for as bytes.
func RawHash(c *handlers.Call, format v1.HashOutputFormat) (bool, error) {
	switch format {
	case v1.HashOutputFormat_HASH_OUTPUT_FORMAT_UNSPECIFIED, v1.HashOutputFormat_HASH_OUTPUT_FORMAT_HEX:
		return false, nil
	case v1.HashOutputFormat_HASH_OUTPUT_FORMAT_RAW:
		return true, nil
	default:
		return false, requests.Invalid(c.Operation, "outputFormat", "is %d, expected 0 or 1 (hex) or 2 (raw)", format)
	}
}

// HashReply returns the reply with a digest. It is one allocation.
func HashReply(c *handlers.Call, name, algorithm string, digest []byte, raw bool) *v1.HashDataResponse {
	made := &struct {
		reply      v1.HashDataResponse
		descriptor v1.CryptoDescriptor
		hex        v1.HashDataResponse_HashValueHex
		raw        v1.HashDataResponse_HashValueRaw
	}{}
	made.descriptor.Profile, made.descriptor.Operation, made.descriptor.Algorithm = name, c.Operation.String(), algorithm
	made.reply.Descriptor_ = &made.descriptor
	if raw {
		made.raw.HashValueRaw = bytes.Clone(digest)
		made.reply.HashValue = &made.raw
	} else {
		made.hex.HashValueHex = handlers.Hexadecimal(digest)
		made.reply.HashValue = &made.hex
	}
	return &made.reply
}
