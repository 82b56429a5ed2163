// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// PlainUnary returns the description of a method that is not an operation of a profile.
// Metrics of operations do not count its calls. If its messages have a field named metadata,
// the reply has the metadata of the request.
func PlainUnary[Request, Reply proto.Message](name string, answer func(context.Context, Request) (Reply, error)) grpc.MethodDesc {
	var noRequest Request
	var noReply Reply
	var requestField, replyField protowire.Number
	if noRequest.ProtoReflect().Descriptor().Fields().ByName("metadata") != nil {
		requestField, replyField = requests.MetadataField(noRequest), requests.MetadataField(noReply)
	}
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			request := requests.New[Request]()
			e := &requests.Envelope{Message: request, RequestField: requestField, ReplyField: replyField}
			if err := decode(e); err != nil {
				return nil, err
			}
			reply, err := answer(ctx, request)
			if err != nil {
				return nil, err
			}
			requests.Identify(reply, replyField, e.Metadata, nil)
			return reply, nil
		},
	}
}
