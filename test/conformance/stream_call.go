// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	tinkaead "github.com/tink-crypto/tink-go/v2/aead/subtle"
	tinkkwp "github.com/tink-crypto/tink-go/v2/kwp/subtle"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/segment"
	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

// The vectors of this file go through the socket. Tink wraps and unwraps the data keys and encrypts
// and decrypts the data; the headers are written and read here, as docs/formats.md describes them.

// wrappingKeyID is the id of the key in the broker's directory under which data keys are wrapped.
const wrappingKeyID = "wrapping"

// streamWrapping is a way to wrap data keys that Tink has, too. docs/formats.md has its number and its
// name.
type streamWrapping struct {
	number byte
	name   string
	// binds reports whether streams can have a context.
	binds  bool
	wrap   func(key, dataKey, header []byte) ([]byte, error)
	unwrap func(key, wrapped, header []byte) ([]byte, error)
}

var streamWrappings = []streamWrapping{
	{
		2, "aes-kwp", false,
		func(key, dataKey, _ []byte) ([]byte, error) {
			k, err := tinkkwp.NewKWP(key)
			if err != nil {
				return nil, err
			}
			return k.Wrap(dataKey)
		},
		func(key, wrapped, _ []byte) ([]byte, error) {
			k, err := tinkkwp.NewKWP(key)
			if err != nil {
				return nil, err
			}
			return k.Unwrap(wrapped)
		},
	},
	{
		3, "aes-gcm", true,
		func(key, dataKey, header []byte) ([]byte, error) {
			k, err := tinkaead.NewAESGCM(key)
			if err != nil {
				return nil, err
			}
			return k.Encrypt(dataKey, header)
		},
		func(key, wrapped, header []byte) ([]byte, error) {
			k, err := tinkaead.NewAESGCM(key)
			if err != nil {
				return nil, err
			}
			return k.Decrypt(wrapped, header)
		},
	},
}

// addStreamCalls adds streams of EncryptStream and DecryptStream.
func (p *plan) addStreamCalls() error {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never returns an error
	p.profiles.keys[wrappingKeyID+".bin"] = key
	for _, w := range streamWrappings {
		profile := p.profiles.stream(w.name)
		name := algorithm.AES256GCMHKDF64KB.String() + ", " + w.name
		for _, size := range streamSizes() {
			at := fmt.Sprintf("%d bytes", size)
			made := func() streamCall {
				context := make([]byte, size%100)
				if !w.binds {
					context = nil
				}
				_, _ = rand.Read(context) // never returns an error
				plaintext := newStream(size).plaintext
				return streamCall{w, key, profile, context, plaintext}
			}
			p.add(row{"EncryptStream", name, fromTink}, at, func(ctx context.Context, c *wire.Client) verdict { return made().encrypts(ctx, c) })
			p.add(row{"DecryptStream", name, fromTink}, at, func(ctx context.Context, c *wire.Client) verdict { return made().decrypts(ctx, c) })
		}
	}
	return nil
}

// streamCall is a plaintext with the wrapping key of the broker.
type streamCall struct {
	streamWrapping
	key                []byte
	profile            string
	context, plaintext []byte
}

// The beginnings of wrapped keys and of encrypted streams.
const (
	wrappedMagic = "CBK\x01"
	streamMagic  = "CBS\x01"
)

// header returns the header of the wrapped key. "-" is the provider of keys in the broker's
// directory, which have no versions.
func (s streamCall) header() []byte {
	header := append([]byte(wrappedMagic), s.number)
	var hash []byte
	if len(s.context) > 0 {
		sum := sha256.Sum256(s.context)
		hash = sum[:]
	}
	for _, field := range [][]byte{[]byte("-"), []byte(wrappingKeyID), nil, hash} {
		header = append(append(header, byte(len(field))), field...)
	}
	return header
}

// data returns the data of the stream, which Tink encrypts and decrypts.
func (s streamCall) data(dataKey []byte) stream {
	return stream{dataKey, append([]byte(streamMagic), s.context...), s.plaintext}
}

// encrypts lets Tink decrypt what EncryptStream returns.
func (s streamCall) encrypts(ctx context.Context, c *wire.Client) verdict {
	encrypted, err := c.EncryptStream(ctx, s.profile, wrappingKeyID, s.context, s.plaintext)
	if err != nil {
		return failed("%v", err)
	}
	rest, ok := bytes.CutPrefix(encrypted, []byte(streamMagic))
	if !ok || len(rest) < 2 || len(rest)-2 < int(binary.BigEndian.Uint16(rest)) {
		return failed("the stream has no header, but begins with %x", encrypted[:min(16, len(encrypted))])
	}
	wrappedKey, data := rest[2:2+int(binary.BigEndian.Uint16(rest))], rest[2+int(binary.BigEndian.Uint16(rest)):]
	wrapped, ok := bytes.CutPrefix(wrappedKey, s.header())
	if !ok {
		return failed("the wrapped key begins with %x, want %x", wrappedKey[:min(len(s.header()), len(wrappedKey))], s.header())
	}
	dataKey, err := s.unwrap(s.key, wrapped, s.header())
	if err != nil {
		return failed("Tink does not unwrap the data key: %v", err)
	}
	return s.data(dataKey).tinkDecrypts(bytes.NewReader(data))
}

// decrypts lets DecryptStream decrypt what Tink wrapped and encrypted, whole and without its last byte.
func (s streamCall) decrypts(ctx context.Context, c *wire.Client) verdict {
	dataKey := make([]byte, segment.KeySize)
	_, _ = rand.Read(dataKey) // never returns an error
	wrapped, err := s.wrap(s.key, dataKey, s.header())
	if err != nil {
		return failed("Tink: %v", err)
	}
	data, err := s.data(dataKey).tinkEncrypts()
	if err != nil {
		return failed("Tink: %v", err)
	}
	wrappedKey := append(s.header(), wrapped...)
	encrypted := binary.BigEndian.AppendUint16([]byte(streamMagic), uint16(len(wrappedKey))) //nolint:gosec // a few hundred bytes
	encrypted = append(append(encrypted, wrappedKey...), data...)
	found, err := c.DecryptStream(ctx, s.profile, s.context, encrypted)
	if err != nil {
		return failed("%v", err)
	}
	_, err = c.DecryptStream(ctx, s.profile, s.context, encrypted[:len(encrypted)-1])
	if v := judgeRefusal(err, []refusal{{"a cut stream", "does not authenticate"}, {"a cut stream", "the end of the stream is missing"}}); v.failed != "" {
		return v
	}
	return judgeEqual("the plaintext", found, s.plaintext)
}
