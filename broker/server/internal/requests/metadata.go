// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxMetadataSize is the largest size in bytes of the metadata of a request, with its tag, its
// length and unknown fields. The reply repeats the metadata and has to fit into a message.
// Without the limit, gRPC would answer RESOURCE_EXHAUSTED, after which clients try again.
const maxMetadataSize = 1 << 20

// CheckMetadataSize refuses metadata of more than 1 MiB. metadata is as [Retag] returned it.
func CheckMetadataSize(op fmt.Stringer, metadata []byte) error {
	if len(metadata) > maxMetadataSize {
		return Invalid(op, "metadata", "has %d bytes, expected at most %d", len(metadata), maxMetadataSize)
	}
	return nil
}

// Identify gives a reply the metadata of its request, and the warning if it is not nil.
// metadata is as [Retag] returned it, and number is its field in the reply.
func Identify(reply proto.Message, number protowire.Number, metadata, warning []byte) {
	if warning != nil {
		metadata = WithWarning(metadata, number, warning)
	}
	if metadata != nil {
		// The library writes unknown fields unchanged. The client reads this field as its
		// metadata.
		reply.ProtoReflect().SetUnknown(protoreflect.RawFields(metadata))
	}
}

// Unreadable returns INVALID_ARGUMENT for bytes that are not the message m. The protobuf
// library randomly changes the beginning of its errors, so that nobody relies on them.
// Unreadable removes that beginning, so that the broker's error is always the same.
func Unreadable(op fmt.Stringer, m proto.Message, err error) error {
	problem := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
	return status.Errorf(codes.InvalidArgument, "%s: the request is not a %s: %s", op, m.ProtoReflect().Descriptor().FullName(), problem)
}

// maxReused is the largest size in bytes of metadata whose memory the next request reuses.
const maxReused = 1 << 10

// Reusable returns the memory of metadata for the next request, or nil if it is larger than
// 1 KiB.
func Reusable(metadata []byte) []byte {
	if cap(metadata) > maxReused {
		return nil
	}
	return metadata[:0]
}

// Request is the type of a request whose metadata is an M. The generations have different
// types for the same metadata.
type Request[M Metadata[T], T TraceContext] interface {
	proto.Message
	GetMetadata() M
}

// New returns an empty message.
func New[M proto.Message]() M {
	var none M
	return none.ProtoReflect().New().Interface().(M)
}

// MetadataField returns the number of the field metadata of a message. It panics if the
// message does not have the field.
func MetadataField(m proto.Message) protowire.Number {
	descriptor := m.ProtoReflect().Descriptor()
	field := descriptor.Fields().ByName("metadata")
	if field == nil {
		panic(fmt.Sprintf("requests: %s has no field metadata", descriptor.FullName()))
	}
	return field.Number()
}
