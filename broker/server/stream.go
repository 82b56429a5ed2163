// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"google.golang.org/grpc"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
)

// defaultIdleTime bounds how long a stream waits for a client that has begun
// something and does not go on with it.
const defaultIdleTime = time.Minute

// WithIdleTime changes how long a stream waits for a client that has to send the
// next part of an input, or to read its replies. Without it, that is a minute.
func WithIdleTime(d time.Duration) Option {
	return func(s *Server) { s.idleTime = d }
}

// streamService is the service cryptobroker.stream.v1.StreamService.
func (s *Server) streamService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: streamv1.StreamService_ServiceDesc.ServiceName,
		Metadata:    streamv1.StreamService_ServiceDesc.Metadata,
		Streams: []grpc.StreamDesc{
			{StreamName: "HashStream", ClientStreams: true, Handler: s.hashStream},
			{StreamName: "Exchange", ClientStreams: true, ServerStreams: true, Handler: s.exchange},
		},
	}
}
