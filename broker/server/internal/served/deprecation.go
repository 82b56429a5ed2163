// SPDX-License-Identifier: Apache-2.0

package served

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

// warningOf returns the warning of a deprecated profile as an encoded field of metadata, or
// nil if the profile is not deprecated. The warning has the same fields in all generations
// that have it.
func warningOf(p *profile.Compiled) []byte {
	d := p.Deprecation()
	if d == nil {
		return nil
	}
	orNil := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	warning, err := proto.MarshalOptions{Deterministic: true}.Marshal(&v1.DeprecationWarning{
		Profile:         p.Name(),
		ReplacedBy:      orNil(d.ReplacedBy),
		DeprecatedSince: orNil(d.DeprecatedSince),
		RemoveAfter:     orNil(d.RemoveAfter),
		Reason:          orNil(d.Reason),
	})
	if err != nil {
		panic("served: encode the deprecation warning of a valid profile: " + err.Error())
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, requests.WarningField, protowire.BytesType), warning)
}
