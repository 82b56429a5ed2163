// SPDX-License-Identifier: Apache-2.0

package server

import (
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// envelope is a request on its way through the codec, which sees its bytes.
type envelope struct {
	message proto.Message
	// requestField and replyField are the numbers of the metadata.
	requestField, replyField protowire.Number
	// metadata is the metadata of the request as it was on the wire, with the
	// tag that it has in the reply.
	metadata []byte
	// err says why the message could not be read. It is not the codec's error,
	// since gRPC answers INTERNAL for that, which blames the broker.
	err error
}

// keptMessage is a message of a stream as it was on the wire. Who received it
// frees it.
type keptMessage struct{ buffer mem.Buffer }

// wireMessage is a message of a stream as it will be on the wire.
type wireMessage mem.BufferSlice

// codec is gRPC's codec for protobuf, save for those above.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if message, ok := v.(wireMessage); ok {
		return mem.BufferSlice(message), nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	e, ok := v.(*envelope)
	if !ok {
		if kept, ok := v.(*keptMessage); ok {
			kept.buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
			return nil
		}
		return c.CodecV2.Unmarshal(data, v)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	wire := buffer.ReadOnlyData()
	if e.err = proto.Unmarshal(wire, e.message); e.err != nil {
		return nil
	}
	e.metadata = retag(wire, e.requestField, e.replyField)
	return nil
}

// retag copies a field of a message that was read without an error, with
// another number. A field that is there twice is copied twice: the parts belong
// to one message.
func retag(wire []byte, from, to protowire.Number) []byte {
	var copied []byte
	for len(wire) > 0 {
		number, kind, tag := protowire.ConsumeTag(wire)
		if tag < 0 {
			return copied
		}
		value := protowire.ConsumeFieldValue(number, kind, wire[tag:])
		if value < 0 {
			return copied
		}
		if number == from && kind == protowire.BytesType {
			if copied == nil {
				copied = make([]byte, 0, protowire.SizeTag(to)+value)
			}
			copied = protowire.AppendTag(copied, to, kind)
			copied = append(copied, wire[tag:tag+value]...)
		}
		wire = wire[tag+value:]
	}
	return copied
}
