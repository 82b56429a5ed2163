// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"

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
	// tag that it has in the reply. Its array may be used again.
	metadata []byte
	// buffer has the bytes of the request, which the message may refer to; nil where
	// it was not received. Who made the envelope frees it.
	buffer mem.Buffer
	// parts are those bytes instead where they were not joined, and input is what they
	// have of a large one.
	parts mem.BufferSlice
	input input
	// size is that of the request in bytes, 0 where it was not received.
	size int
	// err says why the message could not be read. It is not the codec's error,
	// since gRPC answers INTERNAL for that, which blames the broker.
	err error
}

// keptMessage is a message of a stream as it was on the wire. Who received it
// frees it.
type keptMessage struct{ buffer mem.Buffer }

// partedMessage is the same, in the parts that it came in.
type partedMessage struct{ parts mem.BufferSlice }

// wireMessage is a message of a stream as it will be on the wire.
type wireMessage mem.BufferSlice

// codec is gRPC's codec for protobuf, save for those above.
type codec struct {
	encoding.CodecV2
	// oversized lets requests that take more memory than is set aside for them be
	// decoded one at a time.
	oversized *sync.Mutex
}

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name), &sync.Mutex{}} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch message := v.(type) {
	case wireMessage:
		return mem.BufferSlice(message), nil
	case *unaryReply:
		return message.message(), nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	e, ok := v.(*envelope)
	if !ok {
		switch message := v.(type) {
		case *keptMessage:
			message.buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
			return nil
		case *partedMessage:
			data.Ref()
			message.parts = data
			return nil
		}
		return c.CodecV2.Unmarshal(data, v)
	}
	if e.size = data.Len(); e.size > maxRequestSize {
		// It will be refused, with the name of the field that is too large.
		c.oversized.Lock()
		defer c.oversized.Unlock()
	}
	wire, parted := readParts(data, e.message, &e.input)
	if parted {
		data.Ref()
		e.parts = data
	} else {
		e.buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
		wire = e.buffer.ReadOnlyData()
		if e.err = unmarshal(wire, e.message); e.err != nil {
			return nil
		}
	}
	if e.metadata = retag(e.metadata[:0], wire, e.requestField, e.replyField); len(e.metadata) == 0 {
		e.metadata = nil
	}
	return nil
}

// free lets go of the bytes of the request.
func (e *envelope) free() {
	if e.buffer != nil {
		e.buffer.Free()
		e.buffer = nil
	}
	e.parts.Free()
	e.parts = nil
}

// retag appends a field of a message that was read without an error, with
// another number. A field that is there twice is appended twice: the parts belong
// to one message.
func retag(copied, wire []byte, from, to protowire.Number) []byte {
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
			copied = protowire.AppendTag(copied, to, kind)
			copied = append(copied, wire[tag:tag+value]...)
		}
		wire = wire[tag+value:]
	}
	return copied
}
