// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// EncodedMessage is a message of a stream in its wire format.
type EncodedMessage mem.BufferSlice

// Codec is gRPC's codec for protobuf. It writes encoded replies, which are an [EncodedMessage] or
// the reply in a [Slot], without a change. Handlers read requests without the codec, see
// [Incoming].
type Codec struct{ encoding.CodecV2 }

// NewCodec returns the codec of a server.
func NewCodec() Codec { return Codec{encoding.GetCodecV2(protocodec.Name)} }

// Marshal implements encoding.CodecV2.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch message := v.(type) {
	case EncodedMessage:
		return mem.BufferSlice(message), nil
	case *Slot:
		return message.wireMessage(), nil
	}
	return c.CodecV2.Marshal(v)
}
