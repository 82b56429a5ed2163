// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// The numbers of the fields in requests of EncryptData and DecryptData, in their key source
// (fieldKey…) and in their cipher metadata (fieldGiven…). They are the same in all
// generations. The wire type of all these fields is bytes.
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
	fieldGivenTag   = 3 // only in DecryptData
)

// readCipher reads a request of EncryptData or DecryptData in the form that clients send. It
// reports false in the same cases as readHash. Fields of type bytes share the memory of the wire.
// Only keys are copies, because the broker overwrites them after use.
func readCipher(wire []byte, m proto.Message) bool {
	last := fieldGivenAAD
	switch m.(type) {
	case *v0.EncryptDataRequest, *v1.EncryptDataRequest:
	case *v0.DecryptDataRequest, *v1.DecryptDataRequest:
		last = fieldGivenTag
	default:
		return false
	}
	r, ok := cipherFields(wire, last)
	if !ok {
		return false
	}
	switch m := m.(type) {
	case *v0.EncryptDataRequest:
		m.Profile, m.KeySource, m.Plaintext = r.profile, r.keySourceV0(), r.text
		if r.given {
			m.EncryptMetadata = &v0.EncryptMetadata{Nonce: r.nonce, Aad: r.aad}
		}
	case *v0.DecryptDataRequest:
		m.Profile, m.KeySource, m.Ciphertext = r.profile, r.keySourceV0(), r.text
		if r.given {
			m.DecryptMetadata = &v0.DecryptMetadata{Nonce: r.nonce, Aad: r.aad, Tag: r.tag}
		}
	case *v1.EncryptDataRequest:
		m.Profile, m.KeySource, m.Plaintext = r.profile, r.keySourceV1(), r.text
		if r.given {
			m.EncryptMetadata = &v1.EncryptMetadata{Nonce: r.nonce, Aad: r.aad}
		}
	case *v1.DecryptDataRequest:
		m.Profile, m.KeySource, m.Ciphertext = r.profile, r.keySourceV1(), r.text
		if r.given {
			m.DecryptMetadata = &v1.DecryptMetadata{Nonce: r.nonce, Aad: r.aad, Tag: r.tag}
		}
	}
	return true
}

// cipherRequest is a request of EncryptData or DecryptData of any generation.
type cipherRequest struct {
	profile               string
	keyID, key            []byte // one of them is nil
	text, nonce, aad, tag []byte
	// given reports whether the request has cipher metadata, which may be empty.
	given bool
}

// cipherFields returns the fields of a request. lastGiven is the number of the last field
// that its cipher metadata may have. ok is false for a request that readCipher does not read.
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

// keySourceV0 returns the key source. A raw key and the messages around it are in one
// allocation.
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

// keySourceV1 returns the key source. A raw key and the messages around it are in one
// allocation.
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

// bytesFields returns the fields of a message by their numbers. ok is false if the message has
// fields that are not bytes, have a number above last or are there twice. A missing field is nil;
// an empty field is not. The capacity of a field is its length, so append does not overwrite the
// wire.
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
