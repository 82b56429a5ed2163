// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// maxFields is how many fields a request may have, those of messages in it and
	// those that are not known among them. Each takes memory whatever its size is, and
	// no request needs more than some thirty.
	maxFields = 256
	// maxNesting is how deep messages of a request may be in each other.
	maxNesting = 16
)

// fieldsProblem returns why a request would take memory out of proportion to its size, or
// nothing where it would not. It does not look for other errors: the library finds them.
func fieldsProblem(wire []byte, message protoreflect.MessageDescriptor) string {
	left := maxFields
	return countFields(wire, message, &left, maxNesting)
}

func countFields(wire []byte, message protoreflect.MessageDescriptor, left *int, depth int) string {
	if depth == 0 {
		return fmt.Sprintf("it has messages in messages more than %d deep", maxNesting)
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
			return fmt.Sprintf("it has more than %d fields, expected fewer", maxFields)
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
