// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tink-crypto/tink-go/v2/streamingaead/subtle"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/segment"
)

// fromTink is another implementation of the streams.
const fromTink = "Tink"

const tinkModule = "github.com/tink-crypto/tink-go/v2"

func tinkSource() source {
	return source{tinkModule, moduleVersion(tinkModule), "another implementation of AES-GCM-HKDF for streams: it decrypts what the broker encrypted, and the broker what it encrypted, and a cut stream"}
}

const (
	encryptingStreams = "encrypt streams"
	decryptingStreams = "decrypt streams"
)

// streamSizes are sizes of plaintexts in bytes, around the bounds of segments.
func streamSizes() []int {
	size := algorithm.AES256GCMHKDF64KB.SegmentSize()
	full := size - segment.TagSize
	whole := full - segment.HeaderSize
	sizes := []int{0, 1, 2, 1000}
	for _, bound := range []int{whole, whole + full, whole + 2*full, whole + 15*full} {
		sizes = append(sizes, bound-1, bound, bound+1)
	}
	return sizes
}

func (p *plan) addStreams() error {
	name := algorithm.AES256GCMHKDF64KB.String()
	for _, size := range streamSizes() {
		at := fmt.Sprintf("%d bytes", size)
		p.add(row{encryptingStreams, name, fromTink}, at, inProcess(func() verdict { return newStream(size).brokerEncrypts() }))
		p.add(row{decryptingStreams, name, fromTink}, at, inProcess(func() verdict { return newStream(size).brokerDecrypts() }))
	}
	return nil
}

// stream is a plaintext with a key and additional data.
type stream struct{ key, additional, plaintext []byte }

func newStream(size int) stream {
	s := stream{make([]byte, segment.KeySize), make([]byte, size%100), make([]byte, size)}
	for _, data := range [][]byte{s.key, s.additional, s.plaintext} {
		_, _ = rand.Read(data) // never returns an error
	}
	return s
}

func (s stream) tink() (*subtle.AESGCMHKDF, error) {
	return subtle.NewAESGCMHKDF(s.key, "SHA256", segment.KeySize, algorithm.AES256GCMHKDF64KB.SegmentSize(), 0)
}

// brokerEncrypts lets Tink decrypt what the broker encrypted.
func (s stream) brokerEncrypts() verdict {
	var encrypted bytes.Buffer
	e, err := segment.NewEncrypter(&encrypted, s.key, s.additional)
	if err != nil {
		return failed("%v", err)
	}
	if err := writeAll(e, s.plaintext, 1000); err != nil {
		return failed("encrypt: %v", err)
	}
	return s.tinkDecrypts(&encrypted)
}

// tinkDecrypts lets Tink decrypt.
func (s stream) tinkDecrypts(encrypted io.Reader) verdict {
	tink, err := s.tink()
	if err != nil {
		return failed("Tink: %v", err)
	}
	reader, err := tink.NewDecryptingReader(encrypted, s.additional)
	if err != nil {
		return failed("Tink: %v", err)
	}
	found, err := io.ReadAll(reader)
	if err != nil {
		return failed("Tink does not decrypt what the broker encrypted: %v", err)
	}
	return judgeEqual("the plaintext", found, s.plaintext)
}

// tinkEncrypts returns what Tink encrypts.
func (s stream) tinkEncrypts() ([]byte, error) {
	tink, err := s.tink()
	if err != nil {
		return nil, err
	}
	var encrypted bytes.Buffer
	writer, err := tink.NewEncryptingWriter(&encrypted, s.additional)
	if err != nil {
		return nil, err
	}
	err = writeAll(writer, s.plaintext, 70000)
	return encrypted.Bytes(), err
}

// brokerDecrypts lets the broker decrypt what Tink encrypted, whole and without its last byte.
func (s stream) brokerDecrypts() verdict {
	encrypted, err := s.tinkEncrypts()
	if err != nil {
		return failed("Tink: %v", err)
	}
	found, err := s.decrypt(encrypted)
	if err != nil {
		return failed("decrypt: %v", err)
	}
	if _, err := s.decrypt(encrypted[:len(encrypted)-1]); !errors.Is(err, segment.ErrAuthentication) && !errors.Is(err, segment.ErrTruncated) {
		return failed("decrypt a stream without its last byte: %v", err)
	}
	return judgeEqual("the plaintext", found, s.plaintext)
}

func (s stream) decrypt(encrypted []byte) ([]byte, error) {
	var plaintext bytes.Buffer
	d, err := segment.NewDecrypter(&plaintext, s.key, s.additional)
	if err != nil {
		return nil, err
	}
	err = writeAll(d, encrypted, 1000)
	return plaintext.Bytes(), err
}

// writeAll writes data in parts of a size, and closes the writer.
func writeAll(to io.WriteCloser, data []byte, part int) error {
	for chunk := range slices.Chunk(data, part) {
		if _, err := to.Write(chunk); err != nil {
			return err
		}
	}
	return to.Close()
}
