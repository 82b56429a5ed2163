// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

const secretSize = 32

// Session is a session that has begun. It is safe for concurrent use.
type Session struct {
	id      string
	expires time.Time

	mu     sync.Mutex
	secret [secretSize]byte
	epoch  uint64
	number uint64
	closed bool
}

// Request is an encrypted request: the headers X-Kid, X-Enc-Alg, X-Timestamp and X-Sequence, and the
// body.
type Request struct {
	Kid, EncAlg, Timestamp, Sequence string
	Body                             []byte

	path  string
	epoch uint64
}

// ErrClosed means that the session was closed.
var ErrClosed = errors.New("session: the session is closed")

// ID returns the id of the session.
func (s *Session) ID() string { return s.id }

// Expires returns when the session ends.
func (s *Session) Expires() time.Time { return s.expires }

// Seal encrypts a request with a method and a path. The path has no query and is in its normal form
// (RFC 3986, section 6.2.2). A request is sent once: its repetition is refused.
func (s *Session) Seal(method, path string, plaintext []byte) (*Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seal(method, path, plaintext)
}

// Rekey gives the session its next key, and returns the request that tells the broker. The session has
// no way back: if the broker did not get the request, it refuses the following ones. Then begin
// another session. The broker seals no reply to a request from before, so wait for those.
func (s *Session) Rekey(method, path string) (*Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	next, err := s.expand("rekey")
	if err != nil {
		return nil, err
	}
	copy(s.secret[:], next)
	clear(next)
	s.epoch++
	s.number = 0
	return s.seal(method, path, nil)
}

func (s *Session) seal(method, path string, plaintext []byte) (*Request, error) {
	aead, err := s.cipher("request")
	if err != nil {
		return nil, err
	}
	s.number++
	r := &Request{
		Kid: "session:" + s.id, EncAlg: encAlg, Timestamp: strconv.FormatInt(time.Now().UnixMilli(), 10),
		Sequence: strconv.FormatUint(s.epoch, 10) + "." + strconv.FormatUint(s.number, 10), path: path, epoch: s.epoch,
	}
	r.Body = aead.Seal(nil, nil, plaintext, []byte(method+"|"+path+"|"+r.Timestamp+"|"+r.Sequence+"|"+r.Kid))
	return r, nil
}

// Open decrypts the body of the reply to a request. It returns [ErrNotAuthentic] if it is not one to
// this request.
func (s *Session) Open(to *Request, body []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to.epoch != s.epoch {
		return nil, fmt.Errorf("session: the request %s is from before the session got its key %d: %w", to.Sequence, s.epoch, ErrNotAuthentic)
	}
	aead, err := s.cipher("reply")
	if err != nil {
		return nil, err
	}
	plaintext, err := aead.Open(nil, nil, body, []byte("REPLY|"+to.path+"|"+to.Sequence+"|"+to.Kid))
	if err != nil {
		return nil, ErrNotAuthentic
	}
	return plaintext, nil
}

// Close overwrites the secret of the session. It does not tell the broker.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.secret[:])
	s.closed = true
}

// cipher returns AES-256-GCM with the key of a direction, which puts a random IV in front.
func (s *Session) cipher(direction string) (cipher.AEAD, error) {
	if s.closed {
		return nil, ErrClosed
	}
	key, err := s.expand(direction)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (s *Session) expand(label string) ([]byte, error) {
	return hkdf.Expand(sha256.New, s.secret[:], label, secretSize)
}
