// SPDX-License-Identifier: Apache-2.0

package wirev1

import (
	"bytes"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
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

// Method is an operation of the generation, as a unary method and as a call of Exchange.
type Method struct {
	Unary     grpc.MethodDesc
	Exchanged *rpc.ExchangedMethod
	// Number is the number of the field with its request in Call, and with its response in
	// Reply, of cryptobroker.stream.v1.
	Number protowire.Number
}

func method[Request requests.Request[*v1.Metadata, *v1.TraceContext], Reply proto.Message](
	s *rpc.Service, number protowire.Number, op profile.Operation, adapt func(*handlers.Call, Request) (Reply, error),
) Method {
	return namedMethod(s, number, op.String(), op, adapt)
}

// namedMethod is as method, for a method whose name is not the name of its operation.
func namedMethod[Request requests.Request[*v1.Metadata, *v1.TraceContext], Reply proto.Message](
	s *rpc.Service, number protowire.Number, name string, op profile.Operation, adapt func(*handlers.Call, Request) (Reply, error),
) Method {
	return Method{rpc.Unary(s, name, op, adapt), rpc.Exchanged(op, adapt), number}
}

// Methods returns the operations of the generation.
func Methods(s *rpc.Service) []Method {
	a := Adapter{s}
	return []Method{
		method(s, 3, profile.OpHashData, a.HashData),
		method(s, 4, profile.OpSignCertificate, a.SignCertificate),
		method(s, 5, profile.OpEncryptData, a.EncryptData),
		method(s, 6, profile.OpDecryptData, a.DecryptData),
		method(s, 7, profile.OpSignData, a.SignData),
		method(s, 8, profile.OpVerifyData, a.VerifyData),
		method(s, 9, profile.OpGenerateDataKey, a.GenerateDataKey),
		method(s, 10, profile.OpWrapKey, a.WrapKey),
		method(s, 11, profile.OpUnwrapKey, a.UnwrapKey),
		namedMethod(s, 12, "UnwrapBatch", profile.OpUnwrapKey, a.UnwrapBatch),
		method(s, 13, profile.OpRewrapKey, a.RewrapKey),
		method(s, 14, profile.OpGetPublicKey, a.GetPublicKey),
	}
}

// cryptoService returns the service cryptobroker.v1.CryptoService.
func (a Adapter) cryptoService() *grpc.ServiceDesc {
	service := &grpc.ServiceDesc{
		ServiceName: v1.CryptoService_ServiceDesc.ServiceName,
		Metadata:    v1.CryptoService_ServiceDesc.Metadata,
	}
	for _, m := range Methods(a.Service) {
		service.Methods = append(service.Methods, m.Unary)
	}
	return service
}

// Descriptor returns the descriptor of a reply.
func Descriptor(c *handlers.Call, profile, algorithm string) *v1.CryptoDescriptor {
	return &v1.CryptoDescriptor{Profile: profile, Operation: c.Operation.String(), Algorithm: algorithm}
}

// HashData serves the method of the same name.
func (a Adapter) HashData(c *handlers.Call, request *v1.HashDataRequest) (*v1.HashDataResponse, error) {
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

// RawHash reports whether a request asks for a digest in bytes, not in hexadecimal digits. It
// returns INVALID_ARGUMENT for an unknown format.
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

// HashReply returns the reply with a digest. The reply and the messages in it are one
// allocation, because most calls need it.
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
