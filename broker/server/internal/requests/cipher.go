// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// The numbers of the fields of a request for an encryption or a decryption, the
// same in all generations, and of those in its key source and its cipher's
// metadata. All of them are bytes to the wire.
const (
	fieldCipherProfile  = 1
	fieldCipherKey      = 2
	fieldCipherText     = 3 // plaintext or ciphertext
	fieldCipherGiven    = 4
	fieldCipherMetadata = 5

	fieldKeyID  = 1
	fieldKeyRaw = 2

	fieldGivenNonce = 1
	fieldGivenAAD   = 2
	fieldGivenTag   = 3 // of decryptions only
)

// readCipher reads a request for an encryption or a decryption in the form that
// clients send, by the rules of readHash. Fields of bytes are those on the wire and
// no copies, but for keys, which are overwritten once they were used.
func readCipher(wire []byte, m proto.Message) bool {
	switch m := m.(type) {
	case *v0.EncryptDataRequest:
		r, ok := cipherFields(wire, fieldGivenAAD)
		if !ok {
			return false
		}
		m.Profile, m.KeySource, m.Plaintext = r.profile, r.keySourceV0(), r.text
		if r.given {
			m.EncryptMetadata = &v0.EncryptMetadata{Nonce: r.nonce, Aad: r.aad}
		}
	case *v0.DecryptDataRequest:
		r, ok := cipherFields(wire, fieldGivenTag)
		if !ok {
			return false
		}
		m.Profile, m.KeySource, m.Ciphertext = r.profile, r.keySourceV0(), r.text
		if r.given {
			m.DecryptMetadata = &v0.DecryptMetadata{Nonce: r.nonce, Aad: r.aad, Tag: r.tag}
		}
	case *v1.EncryptDataRequest:
		r, ok := cipherFields(wire, fieldGivenAAD)
		if !ok {
			return false
		}
		m.Profile, m.KeySource, m.Plaintext = r.profile, r.keySourceV1(), r.text
		if r.given {
			m.EncryptMetadata = &v1.EncryptMetadata{Nonce: r.nonce, Aad: r.aad}
		}
	case *v1.DecryptDataRequest:
		r, ok := cipherFields(wire, fieldGivenTag)
		if !ok {
			return false
		}
		m.Profile, m.KeySource, m.Ciphertext = r.profile, r.keySourceV1(), r.text
		if r.given {
			m.DecryptMetadata = &v1.DecryptMetadata{Nonce: r.nonce, Aad: r.aad, Tag: r.tag}
		}
	default:
		return false
	}
	return true
}

// cipherRequest is such a request, whatever its generation.
type cipherRequest struct {
	profile               string
	keyID, key            []byte // one of them is nil
	text, nonce, aad, tag []byte
	// given says that there is metadata of the cipher, which may be empty.
	given bool
}

// cipherFields takes a request apart. lastGiven is the last field of its cipher's
// metadata.
func cipherFields(wire []byte, lastGiven int) (r cipherRequest, ok bool) {
	all, ok := bytesFields(wire, fieldCipherMetadata)
	if !ok || !ascii(all[fieldCipherProfile]) || !plainMetadata(all[fieldCipherMetadata]) {
		return r, false
	}
	source, ok := bytesFields(all[fieldCipherKey], fieldKeyRaw)
	if !ok {
		return r, false
	}
	r.keyID, r.key = source[fieldKeyID], source[fieldKeyRaw]
	if (r.keyID == nil) == (r.key == nil) || !ascii(r.keyID) || len(r.key) > MaxAESKeySize {
		return r, false
	}
	given, ok := bytesFields(all[fieldCipherGiven], lastGiven)
	if !ok {
		return r, false
	}
	r.nonce, r.aad, r.tag, r.given = given[fieldGivenNonce], given[fieldGivenAAD], given[fieldGivenTag], all[fieldCipherGiven] != nil
	r.profile, r.text = string(all[fieldCipherProfile]), all[fieldCipherText]
	return r, true
}

// keySource is one allocation.
func (r *cipherRequest) keySourceV0() *v0.KeySource {
	if r.key == nil {
		return &v0.KeySource{Source: &v0.KeySource_KeyId{KeyId: string(r.keyID)}}
	}
	made := &struct {
		source v0.KeySource
		raw    v0.KeySource_RawKey
		key    [MaxAESKeySize]byte
	}{}
	made.raw.RawKey = made.key[:copy(made.key[:], r.key)]
	made.source.Source = &made.raw
	return &made.source
}

// keySource does the same.
func (r *cipherRequest) keySourceV1() *v1.KeySource {
	if r.key == nil {
		return &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: string(r.keyID)}}
	}
	made := &struct {
		source v1.KeySource
		raw    v1.KeySource_RawKey
		key    [MaxAESKeySize]byte
	}{}
	made.raw.RawKey = made.key[:copy(made.key[:], r.key)]
	made.source.Source = &made.raw
	return &made.source
}

// bytesFields takes a message apart that has nothing but fields of bytes, each at
// most once, up to the field of number last. A field that is not there is nil, one
// that is empty is not, and none has room to be appended to.
func bytesFields(wire []byte, last int) (fields [fieldCipherMetadata + 1][]byte, ok bool) {
	for len(wire) > 0 {
		number := int(wire[0] >> 3)
		value, n := protowire.ConsumeBytes(wire[1:])
		if n < 0 || wire[0]&7 != byte(protowire.BytesType) || number == 0 || number > last || fields[number] != nil {
			return fields, false
		}
		fields[number] = value[:len(value):len(value)]
		wire = wire[1+n:]
	}
	return fields, true
}
