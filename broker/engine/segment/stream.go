// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// Sizes in bytes.
const (
	// KeySize is the size of data keys.
	KeySize = 32
	// HeaderSize is the size of the header of an encrypted stream.
	HeaderSize = 1 + saltSize + prefixSize
	// TagSize is the number of bytes by which an encrypted segment is longer than its plaintext.
	TagSize = 16

	saltSize   = KeySize
	prefixSize = nonceSize - 4 - 1
	nonceSize  = 12
)

// maxSegments is the maximum number of segments that a stream has: 256 TiB.
const maxSegments = math.MaxUint32

// Errors of streams.
var (
	// ErrAuthentication means that the stream was changed or cut, or that key and additional
	// data do not belong to it. Nobody can find out which of them is wrong.
	ErrAuthentication = errors.New("segment: the stream does not authenticate with this key and additional data")

	// ErrTruncated means that the end of the stream is missing. What has been written
	// before is authentic.
	ErrTruncated = errors.New("segment: the end of the stream is missing")

	// ErrTooLong means that a stream has more than 2^32 - 1 segments.
	ErrTooLong = errors.New("segment: the stream is longer than 256 TiB")

	// ErrClosed means that something was written after Close.
	ErrClosed = errors.New("segment: the stream is closed")
)

// segments encrypts or decrypts the segments of a stream, one after the other.
type segments struct {
	aead cipher.AEAD
	// nonce is prefixSize random bytes, the number of the next segment, and 1 if the
	// segment is the last one.
	nonce [nonceSize]byte
	next  uint64
}

// newSegments derives the key of a stream. It keeps no reference to key and header.
func newSegments(key, additional, header []byte) (*segments, error) {
	salt, prefix := header[1:1+saltSize], header[1+saltSize:]
	derived, err := hkdf.Key(sha256.New, key, salt, string(additional), KeySize)
	if err != nil {
		return nil, err
	}
	defer clear(derived)
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	s := new(segments)
	copy(s.nonce[:], prefix)
	s.aead, err = cipher.NewGCM(block)
	return s, err
}

// begin sets the nonce of the next segment.
func (s *segments) begin(last bool) error {
	if s.next >= maxSegments {
		return ErrTooLong
	}
	binary.BigEndian.PutUint32(s.nonce[prefixSize:], uint32(s.next))
	s.nonce[nonceSize-1] = 0
	if last {
		s.nonce[nonceSize-1] = 1
	}
	return nil
}

// seal encrypts a segment in place, in a buffer with room for the tag.
func (s *segments) seal(plaintext []byte, last bool) ([]byte, error) {
	if err := s.begin(last); err != nil {
		return nil, err
	}
	s.next++
	return s.aead.Seal(plaintext[:0], s.nonce[:], plaintext, nil), nil
}

// open decrypts a segment into dst, which has no byte yet and room for the plaintext.
func (s *segments) open(dst, segment []byte, last bool) ([]byte, error) {
	if err := s.begin(last); err != nil {
		return nil, err
	}
	plaintext, err := s.aead.Open(dst, s.nonce[:], segment, nil)
	if err != nil {
		return nil, ErrAuthentication
	}
	s.next++
	return plaintext, nil
}

// checkKey returns an error that continues the sentence "the key …".
func checkKey(key []byte) error {
	if len(key) != KeySize {
		return fmt.Errorf("has %d bytes, expected the %d of %s", len(key), KeySize, algorithm.AES256GCMHKDF64KB)
	}
	return nil
}
