// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"bytes"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	v0 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// cipherMessages are new messages that readCipher reads.
func cipherMessages() []proto.Message {
	return []proto.Message{&v0.EncryptDataRequest{}, &v0.DecryptDataRequest{}, &v1.EncryptDataRequest{}, &v1.DecryptDataRequest{}}
}

func marshalled(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	wire, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return wire
}

// cipherRequests are requests in their usual form.
func cipherRequests(tb testing.TB) map[string][]byte {
	raw := &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: bytes.Repeat([]byte("k"), MaxAESKeySize)}}
	named := &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: "key"}}
	metadata := &v1.Metadata{Id: "id", TraceContext: &v1.TraceContext{TraceId: "t", CorrelationId: "c"}}
	return map[string][]byte{
		"an encryption with a key of its own": marshalled(tb, &v1.EncryptDataRequest{
			Profile: "P", KeySource: raw, Plaintext: []byte("text"), Metadata: metadata, EncryptMetadata: &v1.EncryptMetadata{Nonce: []byte("nonce")},
		}),
		"an encryption with additional data": marshalled(tb, &v1.EncryptDataRequest{
			Profile: "P", KeySource: named, Plaintext: []byte("text"), EncryptMetadata: &v1.EncryptMetadata{Nonce: []byte("nonce"), Aad: []byte("aad")},
		}),
		"an encryption with additional data that is empty": marshalled(tb, &v1.EncryptDataRequest{
			Profile: "P", KeySource: named, EncryptMetadata: &v1.EncryptMetadata{Aad: []byte{}},
		}),
		"an encryption with metadata that is empty": marshalled(tb, &v1.EncryptDataRequest{
			KeySource: named, EncryptMetadata: &v1.EncryptMetadata{}, Metadata: &v1.Metadata{},
		}),
		"an encryption with a nonce of the broker's making": marshalled(tb, &v1.EncryptDataRequest{Profile: "P", KeySource: named, Plaintext: []byte("text")}),
		"an encryption with a key that is empty":            marshalled(tb, &v1.EncryptDataRequest{Profile: "P", KeySource: &v1.KeySource{Source: &v1.KeySource_RawKey{}}}),
		"a decryption": marshalled(tb, &v1.DecryptDataRequest{
			Profile: "P", KeySource: raw, Ciphertext: []byte("text"), Metadata: metadata, DecryptMetadata: &v1.DecryptMetadata{Nonce: []byte("nonce"), Aad: []byte("aad"), Tag: []byte("tag")},
		}),
	}
}

func TestUsualCipherRequestsAreReadWithoutTheLibrary(t *testing.T) {
	for name, wire := range cipherRequests(t) {
		t.Run(name, func(t *testing.T) {
			// Its fields include the fields of an encryption.
			if !readCipher(wire, &v1.DecryptDataRequest{}) {
				t.Error("it was left to the library")
			}
		})
	}
}

func TestUnusualCipherRequestsAreLeftToTheLibrary(t *testing.T) {
	text := func(number protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	key := text(fieldCipherKey, string(text(fieldKeyID, "key")))
	for name, wire := range map[string][]byte{
		"no key source":                      text(fieldCipherProfile, "P"),
		"a key source without a key":         text(fieldCipherKey, ""),
		"a key source with two keys":         text(fieldCipherKey, string(slices.Concat(text(fieldKeyID, "key"), text(fieldKeyRaw, "raw")))),
		"a key that is too large":            text(fieldCipherKey, string(text(fieldKeyRaw, string(make([]byte, MaxAESKeySize+1))))),
		"two key sources":                    slices.Concat(key, key),
		"a profile that is not ASCII":        slices.Concat(key, text(fieldCipherProfile, "\xff")),
		"a key id that is not ASCII":         text(fieldCipherKey, string(text(fieldKeyID, "\xff"))),
		"metadata to be refused":             slices.Concat(key, text(fieldCipherMetadata, string(text(1, "\n")))),
		"a field that nobody knows":          slices.Concat(key, text(fieldCipherMetadata+1, "")),
		"a number instead of a text":         append(slices.Clone(key), fieldCipherText<<3|byte(protowire.VarintType), 1),
		"a field beyond the cipher's fields": slices.Concat(key, text(fieldCipherGiven, string(text(fieldGivenTag+1, "")))),
		"a text that ends too early":         append(slices.Clone(key), fieldCipherText<<3|byte(protowire.BytesType), 9),
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range cipherMessages() {
				if readCipher(wire, m) {
					t.Errorf("read as %T", m)
				}
				if proto.Size(m) != 0 {
					t.Errorf("changed the %T", m)
				}
			}
		})
	}
}

// FuzzCipherRequest checks that the library reads the same as readCipher from every request, except for metadata that readCipher
// has already checked.
func FuzzCipherRequest(f *testing.F) {
	for _, wire := range cipherRequests(f) {
		f.Add(wire)
		f.Add(wire[:len(wire)/2])
		f.Add(append(bytes.Clone(wire), wire...))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		for _, got := range cipherMessages() {
			if !readCipher(wire, got) {
				continue
			}
			want := got.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(wire, want); err != nil {
				t.Fatalf("read what the library does not: %v", err)
			}
			metadata := want.ProtoReflect().Descriptor().Fields().ByName("metadata")
			checkLeftOut(t, want)
			want.ProtoReflect().Clear(metadata)
			if !proto.Equal(got, want) {
				t.Fatalf("read %v, want %v", got, want)
			}
		}
	})
}

// checkLeftOut fails if the metadata of a request must be refused.
func checkLeftOut(t *testing.T, request proto.Message) {
	t.Helper()
	var err error
	switch m := request.(type) {
	case interface{ GetMetadata() *v0.Metadata }:
		err = CheckMetadata(MethodName("Cipher"), m.GetMetadata())
	case interface{ GetMetadata() *v1.Metadata }:
		err = CheckMetadata(MethodName("Cipher"), m.GetMetadata())
	default:
		t.Fatalf("%T has no metadata", request)
	}
	if err != nil {
		t.Fatal(err)
	}
}
