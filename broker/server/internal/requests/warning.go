// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// WarningField is the number of the deprecation warning in metadata. It is the same in all
// generations that have the warning.
const WarningField protowire.Number = 2

// HasWarning reports whether the metadata of a reply can have the warning. The metadata of
// the first generation has a text in its place.
func HasWarning(reply proto.Message) bool {
	field := reply.ProtoReflect().Descriptor().Fields().ByName("metadata").Message().Fields().ByNumber(WarningField)
	return field != nil && field.Message() != nil
}

// WithWarning returns metadata with the warning. The warning replaces a warning that the
// client has sent; all other fields stay as they are. metadata is as [Retag] returned it,
// and number is its field in the reply.
func WithWarning(metadata []byte, number protowire.Number, warning []byte) []byte {
	var content []byte
	for len(metadata) > 0 {
		_, _, tag := protowire.ConsumeTag(metadata)
		part, n := protowire.ConsumeBytes(metadata[tag:])
		metadata = metadata[tag+n:]
		for len(part) > 0 {
			found, _, n := protowire.ConsumeField(part)
			if found != WarningField {
				content = append(content, part[:n]...)
			}
			part = part[n:]
		}
	}
	content = append(content, warning...)
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}
