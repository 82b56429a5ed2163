// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// FuzzMetadata checks that reading never panics, whatever a client sends, and that the library decodes the found part as the same
// metadata.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x0a, 0x01, 'P', 0x1a, 0x04, 0x0a, 0x02, 'i', 'd'})
	f.Add([]byte{0x1a, 0x00, 0x1a, 0x02, 0x7a, 0x00})
	f.Add([]byte{0x1b, 0x1c})             // a group of the metadata's number
	f.Add([]byte{0x9a, 0x80, 0x00, 0x00}) // its tag in more bytes than it needs
	f.Add([]byte{0x1a, 0xff, 0xff})
	f.Add([]byte{0x0a, 0x01, 'P', 0x12, 0x01, 'x', 0x1a, 0x09, 0x0a, 0x02, 'i', 'd', 0x1a, 0x03, 0x2a, 0x01, 'c', 0x20, 0x01})
	f.Fuzz(func(t *testing.T, wire []byte) {
		const replyField = 7
		var request v0.HashDataRequest
		e := &Envelope{Message: &request, RequestField: 3, ReplyField: replyField}
		if err := e.Read(bytes.Clone(wire)); err != nil {
			return
		}
		var want v0.HashDataRequest
		if err := proto.Unmarshal(wire, &want); err != nil {
			t.Fatalf("read what the library does not: %v", err)
		}
		if (want.Metadata != nil) != (e.Metadata != nil) {
			t.Fatalf("metadata is there: %v, echoed: %v", want.Metadata != nil, e.Metadata != nil)
		}
		if request.Metadata == nil && want.Metadata != nil { // found to be right
			if err := CheckMetadata(profile.OpHashData, want.GetMetadata()); err != nil {
				t.Fatal(err)
			}
			request.Metadata = want.Metadata
		}
		if !proto.Equal(&request, &want) {
			t.Fatalf("read %v, want %v", &request, &want)
		}
		var echoed v0.Metadata
		for rest := e.Metadata; len(rest) > 0; {
			number, kind, n := protowire.ConsumeTag(rest)
			if number != replyField || kind != protowire.BytesType {
				t.Fatalf("echoed a field %d of wire type %d", number, kind)
			}
			value, m := protowire.ConsumeBytes(rest[n:])
			if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(value, &echoed); err != nil {
				t.Fatal(err)
			}
			rest = rest[n+m:]
		}
		if request.Metadata != nil && !proto.Equal(request.Metadata, &echoed) {
			t.Errorf("echoed %v, want %v", &echoed, request.Metadata)
		}
	})
}
