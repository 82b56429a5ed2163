// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"
)

// The messages of the released wire protocol (third generation), by field numbers. This application does not use the
// project's stubs on purpose: it stands for clients that were released before this broker was written.
const (
	hashDataMethod = "/CryptoBroker.CryptoGrpc/HashData"
	healthMethod   = "/grpc.health.v1.Health/Check"

	requestProfile  protowire.Number = 1
	requestInput    protowire.Number = 2
	requestMetadata protowire.Number = 3

	metadataID protowire.Number = 1

	responseAlgorithm protowire.Number = 2
	responseMetadata  protowire.Number = 3
	responseHashHex   protowire.Number = 4

	healthStatus protowire.Number = 1

	healthServing uint64 = 1
)

// rawCodec passes messages through as the bytes they are.
type rawCodec struct{}

var _ encoding.Codec = rawCodec{}

// Name returns the name of the ordinary codec, so that the server sees no difference.
func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(message any) ([]byte, error) {
	raw, ok := message.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("found a message of type %T, expected *[]byte", message)
	}
	return *raw, nil
}

func (rawCodec) Unmarshal(data []byte, message any) error {
	raw, ok := message.(*[]byte)
	if !ok {
		return fmt.Errorf("found a message of type %T, expected *[]byte", message)
	}
	*raw = append((*raw)[:0], data...)
	return nil
}

// encodeHashData returns a HashDataRequest that asks for hexadecimal output (the default).
func encodeHashData(profile string, input []byte, id string) []byte {
	metadata := protowire.AppendTag(nil, metadataID, protowire.BytesType)
	metadata = protowire.AppendString(metadata, id)

	message := protowire.AppendTag(nil, requestProfile, protowire.BytesType)
	message = protowire.AppendString(message, profile)
	message = protowire.AppendTag(message, requestInput, protowire.BytesType)
	message = protowire.AppendBytes(message, input)
	message = protowire.AppendTag(message, requestMetadata, protowire.BytesType)
	return protowire.AppendBytes(message, metadata)
}

// hashDataReply has the fields of a HashDataResponse that the application uses.
type hashDataReply struct {
	algorithm, hashHex, id string
}

func decodeHashData(message []byte) (hashDataReply, error) {
	var reply hashDataReply
	err := fields(message, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case responseAlgorithm:
			reply.algorithm = string(value)
		case responseHashHex:
			reply.hashHex = string(value)
		case responseMetadata:
			return fields(value, func(number protowire.Number, value []byte, _ uint64) error {
				if number == metadataID {
					reply.id = string(value)
				}
				return nil
			})
		}
		return nil
	})
	if err == nil && reply.algorithm == "" {
		err = errors.New("the answer has no algorithm (field 2)")
	}
	if err == nil && reply.hashHex == "" {
		err = errors.New("the answer has no hexadecimal digest (field 4)")
	}
	return reply, err
}

func decodeHealth(message []byte) (serving bool, err error) {
	err = fields(message, func(number protowire.Number, _ []byte, value uint64) error {
		if number == healthStatus {
			serving = value == healthServing
		}
		return nil
	})
	return serving, err
}

// fields calls visit for each field of a message: with its bytes if it is length-delimited, or with its number if it
// is a varint. It skips fields of other types, as a client does with unknown fields.
func fields(message []byte, visit func(number protowire.Number, value []byte, varint uint64) error) error {
	for len(message) > 0 {
		number, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return fmt.Errorf("malformed message: %w", protowire.ParseError(length))
		}
		message = message[length:]
		var value []byte
		var varint uint64
		switch kind {
		case protowire.BytesType:
			value, length = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			varint, length = protowire.ConsumeVarint(message)
		default:
			length = protowire.ConsumeFieldValue(number, kind, message)
		}
		if length < 0 {
			return fmt.Errorf("malformed field %d: %w", number, protowire.ParseError(length))
		}
		message = message[length:]
		if kind != protowire.BytesType && kind != protowire.VarintType {
			continue
		}
		if err := visit(number, value, varint); err != nil {
			return err
		}
	}
	return nil
}
