// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"crypto/rand"
	"io"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// Encrypter encrypts a stream. It has a buffer for one segment, and is not safe for concurrent
// use.
type Encrypter struct {
	segments *segments
	to       io.Writer
	// buffer has the plaintext of the next segment, and room for its tag.
	buffer []byte
	// room is the maximum size in bytes of the plaintext of the next segment. The first segment
	// has less, because it shares its size with the header.
	room, segmentSize int
	err               error
}

var _ io.WriteCloser = (*Encrypter)(nil)

// NewEncrypter returns an encrypter that writes the encrypted stream to a writer, which gets the
// header at once and then whole segments. The writer must not retain the slices that it is given.
//
// key has KeySize bytes. additional is needed to decrypt, and is not part of the stream. The
// encrypter keeps no reference to either. An error about the key continues the sentence "the
// key …".
func NewEncrypter(to io.Writer, key, additional []byte) (*Encrypter, error) {
	return newEncrypter(to, key, additional, algorithm.AES256GCMHKDF64KB.SegmentSize())
}

func newEncrypter(to io.Writer, key, additional []byte, segmentSize int) (*Encrypter, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	header := make([]byte, HeaderSize)
	header[0] = HeaderSize
	_, _ = rand.Read(header[1:]) // never returns an error
	segments, err := newSegments(key, additional, header)
	if err != nil {
		return nil, err
	}
	if _, err := to.Write(header); err != nil {
		return nil, err
	}
	return &Encrypter{
		segments: segments, to: to, buffer: make([]byte, 0, segmentSize),
		room: segmentSize - HeaderSize - TagSize, segmentSize: segmentSize,
	}, nil
}

// Write encrypts data. A full segment is written once more data comes, because only then it is
// known not to be the last one. After an error, all calls return this error.
func (e *Encrypter) Write(data []byte) (int, error) {
	written := 0
	for e.err == nil && written < len(data) {
		if len(e.buffer) == e.room {
			e.flush(false)
			continue
		}
		part := data[written:min(len(data), written+e.room-len(e.buffer))]
		e.buffer = append(e.buffer, part...)
		written += len(part)
	}
	return written, e.err
}

// Close encrypts the last segment, without which the stream cannot be decrypted. It does not
// close the writer. It returns the error of an earlier call, if there was one.
func (e *Encrypter) Close() error {
	if e.err == nil {
		e.flush(true)
	}
	err := e.err
	e.end(ErrClosed)
	return err
}

// Abort ends the stream without its last segment, so that it cannot be decrypted. It has no
// effect after Close.
func (e *Encrypter) Abort() { e.end(ErrClosed) }

func (e *Encrypter) flush(last bool) {
	sealed, err := e.segments.seal(e.buffer, last)
	if err == nil {
		_, err = e.to.Write(sealed)
	}
	e.buffer = e.buffer[:0]
	e.room = e.segmentSize - TagSize
	if err != nil {
		e.end(err)
	}
}

// end overwrites the plaintext. Later calls return the error.
func (e *Encrypter) end(err error) {
	clear(e.buffer[:cap(e.buffer)])
	e.buffer = e.buffer[:0]
	if e.err == nil {
		e.err = err
	}
}
