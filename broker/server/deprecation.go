// SPDX-License-Identifier: Apache-2.0

package server

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// warningField is the number of the deprecation warning in metadata, the same
// in all generations that have one.
const warningField protowire.Number = 2

// warningOf returns the warning of a deprecated profile as a field of metadata,
// nil where the profile is not deprecated. All generations that have the warning
// have the same fields in it.
func warningOf(p *profile.Compiled) []byte {
	d := p.Deprecation()
	if d == nil {
		return nil
	}
	said := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	warning, err := proto.MarshalOptions{Deterministic: true}.Marshal(&v1.DeprecationWarning{
		Profile:         p.Name(),
		ReplacedBy:      said(d.ReplacedBy),
		DeprecatedSince: said(d.DeprecatedSince),
		RemoveAfter:     said(d.RemoveAfter),
		Reason:          said(d.Reason),
	})
	if err != nil {
		panic("server: the warning of a valid profile cannot be written: " + err.Error())
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, warningField, protowire.BytesType), warning)
}

// hasWarning tells whether the metadata of a reply has a place for the warning:
// that of the first clients, which expect a text there, has none.
func hasWarning(reply proto.Message) bool {
	field := reply.ProtoReflect().Descriptor().Fields().ByName("metadata").Message().Fields().ByNumber(warningField)
	return field != nil && field.Message() != nil
}

// withWarning puts the warning into metadata, which is as retag returned it, in
// the place of what the client sent there. The rest stays as it was.
func withWarning(metadata []byte, number protowire.Number, warning []byte) []byte {
	var content []byte
	for len(metadata) > 0 {
		_, _, tag := protowire.ConsumeTag(metadata)
		part, n := protowire.ConsumeBytes(metadata[tag:])
		metadata = metadata[tag+n:]
		for len(part) > 0 {
			found, _, n := protowire.ConsumeField(part)
			if found != warningField {
				content = append(content, part[:n]...)
			}
			part = part[n:]
		}
	}
	content = append(content, warning...)
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}
