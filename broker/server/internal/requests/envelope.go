// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Envelope is a request with the parts that its reply repeats.
type Envelope struct {
	Message proto.Message
	// RequestField and ReplyField are the numbers of the field metadata in the request and
	// in the reply, 0 if the messages do not have the field.
	RequestField, ReplyField protowire.Number
	// Metadata is the metadata of the request as [Retag] returned it: the bytes of the wire, with
	// the tag of the reply. Read reuses the array.
	Metadata []byte
	// PrivateKey is the key of the issuer in a request for a certificate, see
	// [TakePrivateKey].
	PrivateKey []byte
}

// Read reads a request from the wire. Fields of the message may share the memory of the wire.
func (e *Envelope) Read(wire []byte) error {
	e.PrivateKey, wire = TakePrivateKey(wire, e.Message)
	if err := Unmarshal(wire, e.Message); err != nil {
		return err
	}
	if e.Metadata = Retag(e.Metadata[:0], wire, e.RequestField, e.ReplyField); len(e.Metadata) == 0 {
		e.Metadata = nil
	}
	return nil
}

// Retag appends the field with the number from to copied, with the number to. wire is a
// message that was read without an error. If the field is there twice, Retag appends both:
// protobuf merges them into one message.
func Retag(copied, wire []byte, from, to protowire.Number) []byte {
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
