// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wirev1"
)

// streamService has the streaming methods.
type streamService struct {
	*rpc.Service
	// methods are the operations by the number of their requests in Call and of their responses
	// in Reply.
	methods map[protowire.Number]*rpc.ExchangedMethod
}

// NewService returns the service cryptobroker.stream.v1.StreamService.
func NewService(service *rpc.Service) *grpc.ServiceDesc {
	s := &streamService{Service: service, methods: map[protowire.Number]*rpc.ExchangedMethod{}}
	for _, m := range wirev1.Methods(service) {
		s.methods[m.Number] = m.Exchanged
	}
	return &grpc.ServiceDesc{
		ServiceName: streamv1.StreamService_ServiceDesc.ServiceName,
		Metadata:    streamv1.StreamService_ServiceDesc.Metadata,
		Streams: []grpc.StreamDesc{
			{StreamName: "HashStream", ClientStreams: true, Handler: s.hashStream},
			{StreamName: "EncryptStream", ClientStreams: true, ServerStreams: true, Handler: s.encryptStream},
			{StreamName: "DecryptStream", ClientStreams: true, ServerStreams: true, Handler: s.decryptStream},
			{StreamName: "Exchange", ClientStreams: true, ServerStreams: true, Handler: s.exchange},
		},
	}
}
