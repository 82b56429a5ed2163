// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// encode writes a reply with the metadata of its request, which is as retag returned
// it, and leaves it to the call's place, whose memory it keeps as far as it needs it.
func (p *place) encode(what fmt.Stringer, reply proto.Message, metadata []byte) error {
	size := proto.Size(reply) + len(metadata)
	if size > maxMessageSize {
		return status.Errorf(codes.Internal, "%s: the reply has %d bytes, and clients take no more than %d", what, size, maxMessageSize)
	}
	if !p.more(size) {
		return status.Errorf(codes.ResourceExhausted, "%s: the messages of %s have filled its %d bytes of memory, and the reply needs %d, try again later", what, p.conn.caller.who(), p.conn.caller.memory, size)
	}
	buffer := buffers.Get(size)
	wire, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buffer)[:0], reply)
	if err != nil {
		buffers.Put(buffer)
		return status.Errorf(codes.Internal, "%s: the reply cannot be written: %v", what, err)
	}
	// To its client this is a field of the message, whatever the fields before it.
	wire = append(wire, metadata...)
	*buffer = wire
	p.reply = buffer
	p.keep(size)
	return nil
}

// keep gives back the memory beyond so many bytes.
func (p *place) keep(size int) {
	kept := int64(size)
	if size <= smallMessage {
		kept = 0
	}
	if p.memory > kept {
		p.conn.caller.messages.Release(p.memory - kept)
		p.memory = kept
	}
}
