// SPDX-License-Identifier: Apache-2.0

package server

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// envelope is a request with what its reply needs of it.
type envelope struct {
	message proto.Message
	// requestField and replyField are the numbers of the metadata, 0 where there is
	// none.
	requestField, replyField protowire.Number
	// metadata is the metadata of the request as it was on the wire, with the
	// tag that it has in the reply. Its array may be used again.
	metadata []byte
	// privateKey is that of the issuer in a request for a certificate, see
	// takePrivateKey.
	privateKey []byte
}

// read takes a request from the wire. The message may refer to that.
func (e *envelope) read(wire []byte) error {
	e.privateKey, wire = takePrivateKey(wire, e.message)
	if err := unmarshal(wire, e.message); err != nil {
		return err
	}
	if e.metadata = retag(e.metadata[:0], wire, e.requestField, e.replyField); len(e.metadata) == 0 {
		e.metadata = nil
	}
	return nil
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
