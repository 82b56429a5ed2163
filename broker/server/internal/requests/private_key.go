// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// fieldCAPrivateKey is the number of the issuer's private key in the requests of all
// generations.
const fieldCAPrivateKey protowire.Number = 3

// TakePrivateKey removes the issuer's private key from a request for a certificate, and returns a
// copy of the key and the rest of the request. The protobuf library would make a string of the
// key, which nobody can overwrite. The caller overwrites the key after use.
func TakePrivateKey(wire []byte, m proto.Message) (key, rest []byte) {
	if _, certificate := m.(interface{ GetCaPrivateKey() string }); !certificate {
		return nil, wire
	}
	for at := 0; at < len(wire); {
		number, kind, size := protowire.ConsumeField(wire[at:])
		if size < 0 {
			return key, wire // the library finds the same error
		}
		if number != fieldCAPrivateKey || kind != protowire.BytesType {
			at += size
			continue
		}
		_, _, tag := protowire.ConsumeTag(wire[at:])
		value, _ := protowire.ConsumeBytes(wire[at+tag:])
		clear(key) // if a field is there twice, the last one counts
		key = bytes.Clone(value)
		kept := at + copy(wire[at:], wire[at+size:])
		clear(wire[kept:])
		wire = wire[:kept]
	}
	return key, wire
}
