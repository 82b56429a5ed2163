// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
)

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
	return protowire.AppendBytes(protowire.AppendTag(nil, requests.WarningField, protowire.BytesType), warning)
}
