// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

type number = protowire.Number

// The numbers of the fields that several operations have, and of cryptobroker.stream.v1. The
// file of each operation has the numbers of its own requests and replies. A test compares them with
// the stubs that are generated from the proto files.
const (
	metadataDeprecation, metadataTrace number = 2, 3

	traceID, traceSpanID, traceFlags, traceState, traceCorrelationID number = 1, 2, 3, 4, 5

	deprecationProfile, deprecationReplacedBy, deprecationSince number = 1, 2, 3
	deprecationRemoveAfter, deprecationReason                   number = 4, 5

	descriptorAlgorithm number = 3

	keyID, keyRaw            number = 1, 2
	signSingle, signMultiple number = 1, 2
	componentKeys            number = 1

	requestProfile number = 1 // in every request

	healthStatus                                                           number = 1
	streamStart, streamChunk                                               number = 1, 2
	startMetadata, startFormat                                             number = 3, 4
	exchangeCalls, exchangeGivenUp, exchangeReplies, exchangeGoAway        number = 1, 2, 1, 2
	callID, callTimeout, replyID, replyStatus, statusCode, messageOfStatus number = 1, 2, 1, 2, 1, 2
	messageOfGoAway                                                        number = 1
)

func appendString(b []byte, n number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func appendBytes(b []byte, n number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func appendUint(b []byte, n number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

// nest turns the bytes from start on into a field with a message.
func nest(b []byte, start int, n number) []byte {
	var space [2 * 10]byte
	head := protowire.AppendVarint(protowire.AppendTag(space[:0], n, protowire.BytesType), uint64(len(b)-start))
	return slices.Insert(b, start, head...)
}

// fields reads a message field by field. Values refer to the bytes of the message.
type fields struct {
	wire   []byte
	number number
	bytes  []byte // the value, for the wire type of strings, bytes and messages
	uint   uint64 // the value, for the wire type of integers
	err    error
}

// next reads a field. It reports false at the end of the message, and if there is an error.
func (f *fields) next() bool {
	for len(f.wire) > 0 {
		n, kind, size := protowire.ConsumeTag(f.wire)
		if size < 0 {
			f.err = protowire.ParseError(size)
			return false
		}
		rest := f.wire[size:]
		f.number, f.bytes, f.uint = n, nil, 0
		switch kind {
		case protowire.BytesType:
			f.bytes, size = protowire.ConsumeBytes(rest)
		case protowire.VarintType:
			f.uint, size = protowire.ConsumeVarint(rest)
		default:
			size = protowire.ConsumeFieldValue(n, kind, rest)
		}
		if size < 0 {
			f.err = protowire.ParseError(size)
			return false
		}
		f.wire = rest[size:]
		if kind == protowire.BytesType || kind == protowire.VarintType {
			return true
		}
	}
	return false
}

// appendAlways appends a field of bytes even if it is empty.
func appendAlways(b []byte, n number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}
