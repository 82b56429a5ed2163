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

// maxMetadataSize is how large the metadata of a request may be in bytes, with
// its tag and its length, and with fields that nobody here knows. The reply has it
// as well, and would not fit into a message any more: gRPC then answers
// RESOURCE_EXHAUSTED, which clients take as a reason to try again.
const maxMetadataSize = 1 << 20

// CheckMetadataSize bounds metadata as [Retag] returned it.
func CheckMetadataSize(op fmt.Stringer, metadata []byte) error {
	if len(metadata) > maxMetadataSize {
		return Invalid(op, "metadata", "has %d bytes, expected at most %d", len(metadata), maxMetadataSize)
	}
	return nil
}

// Identify gives a reply the metadata of its request, which is as [Retag] returned it,
// and a warning, where there is one.
func Identify(reply proto.Message, number protowire.Number, metadata, warning []byte) {
	if warning != nil {
		metadata = WithWarning(metadata, number, warning)
	}
	if metadata != nil {
		// Unknown fields are written as they are, and to the client this is its
		// metadata.
		reply.ProtoReflect().SetUnknown(protoreflect.RawFields(metadata))
	}
}

// Unreadable refuses bytes that are not the message they are sent as. The library
// begins its errors in one of two ways by chance, so that nobody relies on them;
// a sentence of the broker's is the same each time.
func Unreadable(op fmt.Stringer, m proto.Message, err error) error {
	problem := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
	return status.Errorf(codes.InvalidArgument, "%s: the request is not a %s: %s", op, m.ProtoReflect().Descriptor().FullName(), problem)
}

// maxReused is the size in bytes of the largest metadata whose memory is kept for
// the next request.
const maxReused = 1 << 10

// Reusable returns the memory of metadata for the next request, or nil where it is too
// large to be kept.
func Reusable(metadata []byte) []byte {
	if cap(metadata) > maxReused {
		return nil
	}
	return metadata[:0]
}

// Message is a pointer to T that is a protobuf message.
type Message[T any] interface {
	*T
	proto.Message
}

// MetadataField returns the number of the field metadata of a message, which has to have it.
func MetadataField(m proto.Message) protowire.Number {
	descriptor := m.ProtoReflect().Descriptor()
	field := descriptor.Fields().ByName("metadata")
	if field == nil {
		panic(fmt.Sprintf("requests: %s has no field metadata", descriptor.FullName()))
	}
	return field.Number()
}
