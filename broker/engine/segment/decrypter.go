// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"errors"
	"io"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// Decrypter decrypts a stream. It has buffers for one segment, and is not safe for concurrent
// use.
type Decrypter struct {
	key, additional []byte    // until the header is complete
	segments        *segments // nil until then
	to              io.Writer
	// buffer has the header, or the next segment.
	buffer, plaintext []byte
	// size is the size of the header, or of the next segment if it is not the last one.
	size, segmentSize int
	err               error
}

var _ io.WriteCloser = (*Decrypter)(nil)

// NewDecrypter returns a decrypter that writes the plaintext to a writer, one segment after the
// other, each once it is authenticated. The writer must not retain the slices that it is given.
//
// key and additional are the same as for the encrypter. The decrypter keeps copies of both until it
// has read the header. An error about the key continues the sentence "the key …".
func NewDecrypter(to io.Writer, key, additional []byte) (*Decrypter, error) {
	return newDecrypter(to, key, additional, algorithm.AES256GCMHKDF64KB.SegmentSize())
}

func newDecrypter(to io.Writer, key, additional []byte, segmentSize int) (*Decrypter, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return &Decrypter{
		key: bytes.Clone(key), additional: bytes.Clone(additional), to: to,
		buffer: make([]byte, 0, segmentSize), plaintext: make([]byte, 0, segmentSize),
		size: HeaderSize, segmentSize: segmentSize,
	}, nil
}

// Write decrypts a part of the encrypted stream. A segment is decrypted once more data comes,
// because only then it is known not to be the last one. After an error, all calls return this
// error. It is ErrAuthentication if the stream is not authentic, or the error of the writer.
func (d *Decrypter) Write(data []byte) (int, error) {
	read := 0
	for d.err == nil && read < len(data) {
		if len(d.buffer) == d.size {
			d.flush(false)
			continue
		}
		part := data[read:min(len(data), read+d.size-len(d.buffer))]
		d.buffer = append(d.buffer, part...)
		read += len(part)
		if d.segments == nil && len(d.buffer) == HeaderSize {
			d.readHeader()
		}
	}
	return read, d.err
}

// Close decrypts the last segment. It returns an error if the stream is not whole: ErrTruncated
// if it was cut between two segments or in the header, ErrAuthentication if it was changed, or
// cut within a segment. After an error, the caller has to discard what was written before. Close
// does not close the writer.
func (d *Decrypter) Close() error {
	if d.err == nil {
		if d.segments == nil || len(d.buffer) < TagSize {
			d.end(ErrTruncated)
		} else {
			d.flush(true)
		}
	}
	err := d.err
	d.end(ErrClosed)
	return err
}

// Abort ends the decryption. It has no effect after Close.
func (d *Decrypter) Abort() { d.end(ErrClosed) }

func (d *Decrypter) readHeader() {
	err := ErrAuthentication
	if d.buffer[0] == HeaderSize {
		d.segments, err = newSegments(d.key, d.additional, d.buffer)
	}
	clear(d.key)
	d.buffer = d.buffer[:0]
	d.size = d.segmentSize - HeaderSize
	if err != nil {
		d.end(err)
	}
}

func (d *Decrypter) flush(last bool) {
	plaintext, err := d.segments.open(d.plaintext[:0], d.buffer, last)
	if errors.Is(err, ErrAuthentication) && last && len(d.buffer) == d.size {
		// An authentic segment that is not the last one means that the rest is missing.
		if _, cut := d.segments.open(d.plaintext[:0], d.buffer, false); cut == nil {
			err = ErrTruncated
		}
	}
	if err == nil && len(plaintext) > 0 {
		_, err = d.to.Write(plaintext)
	}
	d.buffer = d.buffer[:0]
	d.size = d.segmentSize
	if err != nil {
		d.end(err)
	}
}

// end overwrites key and plaintext. Later calls return the error.
func (d *Decrypter) end(err error) {
	clear(d.key)
	clear(d.plaintext[:cap(d.plaintext)])
	if d.err == nil {
		d.err = err
	}
}
