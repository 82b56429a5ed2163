// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Encode writes a reply into the slot. size is what [proto.Size] returned last for the reply.
// metadata is the encoded field with the metadata of the request, which Encode appends. The
// slot keeps only the memory that the reply needs.
// Encode returns RESOURCE_EXHAUSTED if there is no memory for the reply. what names the call
// in errors.
func (p *Slot) Encode(what fmt.Stringer, reply proto.Message, size int, metadata []byte) error {
	size += len(metadata)
	if size > limits.MaxMessageSize {
		return status.Errorf(codes.Internal, "%s: the reply has %d bytes, and clients accept at most %d", what, size, limits.MaxMessageSize)
	}
	if !p.takeMore(size) {
		return p.Caller().NoReplyMemory(what, size)
	}
	buffer := buffers.Pool.Get(size)
	wire, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buffer)[:0], reply)
	if err != nil {
		buffers.Pool.Put(buffer)
		return status.Errorf(codes.Internal, "%s: encode the reply: %v", what, err)
	}
	// The fields of a protobuf message may come in any order.
	wire = append(wire, metadata...)
	*buffer = wire
	p.reply = buffer
	p.keepMemory(size)
	return nil
}

// Send sends a message of a stream that has more messages. It waits while the client does not
// read. A client that takes too long loses its connection.
func (p *Slot) Send(stream grpc.ServerStream, message EncodedMessage) error {
	p.awaitClient(time.Now())
	defer p.clientDone()
	return stream.SendMsg(message)
}

// keepMemory releases the memory beyond size bytes.
func (p *Slot) keepMemory(size int) {
	kept := int64(size)
	if size <= SmallMessage {
		kept = 0
		p.endTransfer()
	}
	kept = max(kept, p.reserved)
	if p.memory > kept {
		p.conn.Caller.messages.Release(p.memory - kept)
		p.memory = kept
	}
}
