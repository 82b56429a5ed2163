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

// TakePrivateKey returns a copy of the issuer's private key in a request for a certificate, and the
// request without the key. The protobuf library would make a string of the key, which nobody can
// overwrite. The caller overwrites the key after use. TakePrivateKey does not change wire, because a
// call that has to wait is served again.
func TakePrivateKey(wire []byte, m proto.Message) (key, rest []byte) {
	if _, certificate := m.(interface{ GetCaPrivateKey() string }); !certificate {
		return nil, wire
	}
	rest = make([]byte, 0, len(wire))
	for len(wire) > 0 {
		number, kind, size := protowire.ConsumeField(wire)
		if size < 0 {
			return key, append(rest, wire[0]) // enough for the library to find an error, and no part of the key
		}
		if number == fieldCAPrivateKey && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(wire)
			value, _ := protowire.ConsumeBytes(wire[tag:])
			clear(key) // if a field is there twice, the last one counts
			key = bytes.Clone(value)
		} else {
			rest = append(rest, wire[:size]...)
		}
		wire = wire[size:]
	}
	return key, rest
}
