// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// method is the name of a method that is no operation of a profile.
type method string

// String implements fmt.Stringer.
func (m method) String() string { return string(m) }

// described describes a method that is no operation of a profile, and so is not
// counted as one. Where its messages have a field named metadata, the reply has
// that of the request.
func described[Request, Reply any, PRequest message[Request], PReply message[Reply]](
	name string, answer func(context.Context, PRequest) (PReply, error),
) grpc.MethodDesc {
	var requestField, replyField protowire.Number
	if PRequest(new(Request)).ProtoReflect().Descriptor().Fields().ByName("metadata") != nil {
		requestField, replyField = metadataField(PRequest(new(Request))), metadataField(PReply(new(Reply)))
	}
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			request := PRequest(new(Request))
			e := &envelope{message: request, requestField: requestField, replyField: replyField}
			if err := decode(e); err != nil {
				return nil, err
			}
			reply, err := answer(ctx, request)
			if err != nil {
				return nil, err
			}
			identify(reply, replyField, e.metadata, nil)
			return reply, nil
		},
	}
}
