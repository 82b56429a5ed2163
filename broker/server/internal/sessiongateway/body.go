// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
)

// readBody reads the body of a request of at most limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *refusal) {
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, limit), r.ContentLength)
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &large):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, tooSlow
	default:
		return nil, cryptoError // the client has closed the connection, or its framing is wrong
	}
}

// readAll reads as many bytes as were announced, or all if size is negative.
func readAll(from io.Reader, size int64) ([]byte, error) {
	if size < 0 {
		return io.ReadAll(from)
	}
	body := make([]byte, size)
	_, err := io.ReadFull(from, body)
	return body, err
}

// plaintext is a decrypted body for the application. It is overwritten when the request has ended
// and the transport does not read it any more.
type plaintext struct {
	mu      sync.Mutex
	bytes   []byte
	readers int
	ended   bool
}

// open returns a reader of the body from its beginning. It implements GetBody of [http.Request].
func (p *plaintext) open() (io.ReadCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, io.ErrClosedPipe
	}
	p.readers++
	return &plaintextReader{of: p, rest: bytes.NewReader(p.bytes)}, nil
}

// end overwrites the body as soon as no reader is open.
func (p *plaintext) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.overwrite()
}

func (p *plaintext) overwrite() {
	if p.ended && p.readers == 0 {
		clear(p.bytes)
	}
}

type plaintextReader struct {
	of     *plaintext
	rest   *bytes.Reader
	closed bool // guarded by the mutex of the plaintext, as rest is
}

// Read implements io.Reader.
func (r *plaintextReader) Read(b []byte) (int, error) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if r.closed {
		return 0, io.ErrClosedPipe
	}
	return r.rest.Read(b)
}

// Close implements io.Closer.
func (r *plaintextReader) Close() error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.of.readers--
		r.of.overwrite()
	}
	return nil
}

// Memory in bytes for a body of a size. For a body of unknown size, the memory of the largest
// body is reserved.
const (
	// requestCopies counts the encrypted body in base64, the encrypted body in bytes, and the
	// decrypted body.
	requestCopies = 3
	// replyCopies counts the reply, and its encrypted form in bytes and in base64.
	replyCopies = 4
)

func planned(size int64) int64 {
	if size < 0 {
		return limits.MaxInputSize
	}
	return size
}
