// SPDX-License-Identifier: Apache-2.0

package server

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

// checkMetadataSize bounds metadata as retag returned it.
func checkMetadataSize(op fmt.Stringer, metadata []byte) error {
	if len(metadata) > maxMetadataSize {
		return invalid(op, "metadata", "has %d bytes, expected at most %d", len(metadata), maxMetadataSize)
	}
	return nil
}

// identify gives a reply the metadata of its request, which is as retag returned it,
// and a warning, where there is one.
func identify(reply proto.Message, number protowire.Number, metadata, warning []byte) {
	if warning != nil {
		metadata = withWarning(metadata, number, warning)
	}
	if metadata != nil {
		// Unknown fields are written as they are, and to the client this is its
		// metadata.
		reply.ProtoReflect().SetUnknown(protoreflect.RawFields(metadata))
	}
}

// unreadable refuses bytes that are not the message they are sent as. The library
// begins its errors in one of two ways by chance, so that nobody relies on them;
// a sentence of the broker's is the same each time.
func unreadable(op fmt.Stringer, m proto.Message, err error) error {
	problem := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
	return status.Errorf(codes.InvalidArgument, "%s: the request is not a %s: %s", op, m.ProtoReflect().Descriptor().FullName(), problem)
}
