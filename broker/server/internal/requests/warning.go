// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// WarningField is the number of the deprecation warning in metadata, the same
// in all generations that have one.
const WarningField protowire.Number = 2

// HasWarning reports whether the metadata of a reply has a place for the warning:
// the metadata of the first clients, which expect a text there, has none.
func HasWarning(reply proto.Message) bool {
	field := reply.ProtoReflect().Descriptor().Fields().ByName("metadata").Message().Fields().ByNumber(WarningField)
	return field != nil && field.Message() != nil
}

// WithWarning puts the warning into metadata, which is as [Retag] returned it, in
// the place of what the client sent there. The rest stays as it was.
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
