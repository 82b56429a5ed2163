// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// The tags of the fields in requests of HashData, in metadata and in trace contexts. They
// are the same in all generations.
const (
	tagHashProfile  = 1<<3 | byte(protowire.BytesType)
	tagHashInput    = 2<<3 | byte(protowire.BytesType)
	tagHashMetadata = 3<<3 | byte(protowire.BytesType)
	tagHashFormat   = 4<<3 | byte(protowire.VarintType)

	tagMetadataID    = 1<<3 | byte(protowire.BytesType)
	tagMetadataTrace = 3<<3 | byte(protowire.BytesType)

	tagTraceFirst       = 1<<3 | byte(protowire.BytesType) // traceId, spanId, traceFlags and
	tagTraceLast        = 4<<3 | byte(protowire.BytesType) // traceState
	tagTraceCorrelation = 5<<3 | byte(protowire.BytesType)
)

// Unmarshal reads a request. Fields of type bytes may share the memory of the wire. Unmarshal may
// leave out metadata that [CheckMetadata] would accept, because replies copy the metadata from
// the wire.
func Unmarshal(wire []byte, m proto.Message) error {
	if readCipher(wire, m) || readHash(wire, m) {
		return nil
	}
	if problem := fieldsProblem(wire, m.ProtoReflect().Descriptor()); problem != "" {
		return errors.New(problem)
	}
	return proto.Unmarshal(wire, m)
}

// readHash reads a request of HashData in the form that all clients send. Most calls of a
// broker have such requests.
//
// It reports false, and leaves the message as it is, for any other message and for anything
// unusual: unknown fields, fields that are there twice, text that is not ASCII, and metadata
// that CheckMetadata refuses. The protobuf library reads such requests.
func readHash(wire []byte, m proto.Message) bool {
	var profile, input, metadata []byte
	var format uint64
	var seen byte
	for len(wire) > 0 {
		tag := wire[0]
		var n int
		wire = wire[1:]
		switch tag {
		case tagHashProfile:
			profile, n = protowire.ConsumeBytes(wire)
		case tagHashInput:
			input, n = protowire.ConsumeBytes(wire)
		case tagHashMetadata:
			metadata, n = protowire.ConsumeBytes(wire)
		case tagHashFormat:
			format, n = protowire.ConsumeVarint(wire)
		default:
			return false
		}
		field := byte(1) << (tag >> 3)
		if n < 0 || seen&field != 0 {
			return false
		}
		seen |= field
		wire = wire[n:]
	}
	if !ascii(profile) || !plainMetadata(metadata) {
		return false
	}
	switch m := m.(type) {
	case *v0.HashRequest:
		if seen&(1<<(tagHashFormat>>3)) != 0 {
			return false
		}
		m.Profile, m.Input = string(profile), input
	case *v0.HashDataRequest:
		m.Profile, m.Input, m.OutputFormat = string(profile), input, v0.HashOutputFormat(int32(format))
	case *v1.HashDataRequest:
		m.Profile, m.Input, m.OutputFormat = string(profile), input, v1.HashOutputFormat(int32(format))
	default:
		return false
	}
	return true
}

// plainMetadata reports whether CheckMetadata accepts metadata and all its fields are known.
func plainMetadata(wire []byte) bool {
	for len(wire) > 0 {
		tag := wire[0]
		value, n := protowire.ConsumeBytes(wire[1:])
		if n < 0 {
			return false
		}
		switch tag {
		case tagMetadataID:
			if !plainID(value) {
				return false
			}
		case tagMetadataTrace:
			if !plainTrace(value) {
				return false
			}
		default:
			return false
		}
		wire = wire[1+n:]
	}
	return true
}

func plainTrace(wire []byte) bool {
	for len(wire) > 0 {
		tag := wire[0]
		value, n := protowire.ConsumeBytes(wire[1:])
		switch {
		case n < 0:
			return false
		case tag == tagTraceCorrelation:
			if !plainID(value) {
				return false
			}
		case tag&7 != byte(protowire.BytesType) || tag < tagTraceFirst || tag > tagTraceLast || !ascii(value):
			return false
		}
		wire = wire[1+n:]
	}
	return true
}

// plainID reports whether checkID accepts an id.
func plainID(id []byte) bool {
	if len(id) > maxMetadataIDSize {
		return false
	}
	for _, c := range id {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

func ascii(text []byte) bool {
	for _, c := range text {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
