// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// maxFields is the maximum number of fields that a request may have. Fields of nested
	// messages and unknown fields count as well. Even an empty field takes memory, and no request
	// needs more than some thirty.
	maxFields = 256
	// maxNesting is how deep the messages of a request may be nested.
	maxNesting = 16
)

// fieldsProblem returns why a request would take much more memory than its size, or the
// empty string. It does not look for other errors, which the protobuf library finds.
func fieldsProblem(wire []byte, message protoreflect.MessageDescriptor) string {
	left := maxFields
	return countFields(wire, message, &left, maxNesting)
}

// countFields subtracts the fields of a message and of its nested messages from left. depth
// is how deep messages may still be nested. It returns a problem as fieldsProblem does.
func countFields(wire []byte, message protoreflect.MessageDescriptor, left *int, depth int) string {
	if depth == 0 {
		return fmt.Sprintf("its messages are nested more than %d deep", maxNesting)
	}
	for len(wire) > 0 {
		number, kind, tag := protowire.ConsumeTag(wire)
		if tag < 0 {
			return ""
		}
		size := protowire.ConsumeFieldValue(number, kind, wire[tag:])
		if size < 0 {
			return ""
		}
		if *left--; *left < 0 {
			return fmt.Sprintf("it has more than %d fields", maxFields)
		}
		if field := message.Fields().ByNumber(number); field != nil && field.Message() != nil && kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(wire[tag:])
			if problem := countFields(inner, field.Message(), left, depth-1); problem != "" {
				return problem
			}
		}
		wire = wire[tag+size:]
	}
	return ""
}
