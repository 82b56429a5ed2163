// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// Sizes in bytes of the longest texts of headers.
const (
	maxToken     = 64 // nonces, client ids
	maxMethod    = 16
	maxTimestamp = 15
	maxAAD       = 8 << 10
)

// Request is an encrypted request with the texts that the client sent.
type Request struct {
	Method, Path string
	// Kid and EncAlg are headers of both versions.
	Kid, EncAlg string
	// IV, Tag, AAD, Nonce and Timestamp are headers of version 1. The client may leave out AAD.
	IV, Tag, AAD, Nonce, Timestamp string
	// IdempotencyKey and ClientID are headers of version 2.
	IdempotencyKey, ClientID string
	// Sequence is a header of the native versions, which have Timestamp as well.
	Sequence string
	Body     []byte
}

// message is a request that has the form of the protocol. Nothing of it is authentic yet.
type message struct {
	protocol algorithm.Session
	id       string
	clientID string
	nonceID  nonceID
	// timestamp is in milliseconds since 1970.
	timestamp int64
	// sealed is IV, ciphertext and tag.
	sealed     []byte
	additional string
	// path is the normal form, and clientPath what the client authenticates.
	path, clientPath string
	// native reports whether the session has a native version. If it has, protocol is zero, because the message does not say which
	// native version it is. epoch and number are the parts of its sequence.
	native        bool
	epoch, number int64
}

// noID replaces a text that does not have the form of an id. No session has this id.
const noID = idPrefix + "00000000000000000000000000000000"

// read reads a request. It reports false if it does not have the form of the protocol. A request with
// X-Idempotency-Key has version 2, and one with X-Sequence a native version.
//
// It reads all of a request whatever is wrong with a part, so that opening a malformed request takes the same time.
func (r *Request) read() (m message, ok bool) {
	id, isID := idOfKid(r.Kid)
	if !isID {
		id = noID
	}
	path, isPath := NormalPath(r.Path)
	m.id, m.path = id, path
	switch {
	case r.Sequence != "":
		ok = r.readNative(&m)
	case r.IdempotencyKey != "":
		ok = r.readV2(&m)
	default:
		ok = r.readV1(&m)
	}
	return m, ok && isID && isPath && r.EncAlg == algorithm.SessionCipher && isMethod(r.Method)
}

func (r *Request) readV1(m *message) bool {
	timestamp, isTime := readTimestamp(r.Timestamp)
	m.protocol, m.nonceID, m.timestamp = algorithm.SessionV1, idOfNonce(r.Nonce), timestamp
	strict := base64.StdEncoding.Strict()
	m.sealed = make([]byte, ivSize+strict.DecodedLen(len(r.Body))+tagSize)
	n, err := strict.Decode(m.sealed[ivSize:], r.Body)
	m.sealed = m.sealed[:ivSize+n+tagSize]
	isIV, isTag := decodeAll(m.sealed[:ivSize], r.IV), decodeAll(m.sealed[ivSize+n:], r.Tag)
	isAAD := r.readAAD(m)
	hasLines := bytes.IndexByte(r.Body, '\r') >= 0 || bytes.IndexByte(r.Body, '\n') >= 0 // package base64 skips line breaks
	return isTime && isRequestNonce(r.Nonce) && r.ClientID == "" && isIV && isTag && isAAD && err == nil && !hasLines
}

// readAAD sets what the request authenticates. The path in X-AAD may have another spelling than the received path, because proxies
// normalise paths, but it has to be the same path.
func (r *Request) readAAD(m *message) bool {
	m.additional, m.clientPath = requestAAD(r.Method, r.Path, r.Timestamp, r.Nonce, r.Kid), r.Path
	if r.AAD == "" {
		return true
	}
	if len(r.AAD) > maxAAD {
		return false
	}
	given, err := base64.StdEncoding.Strict().DecodeString(r.AAD)
	if err != nil {
		return false
	}
	if string(given) == m.additional {
		return true
	}
	rest, ok := strings.CutPrefix(string(given), r.Method+"|")
	if !ok {
		return false
	}
	if m.clientPath, ok = strings.CutSuffix(rest, "|"+r.Timestamp+"|"+r.Nonce+"|"+r.Kid); !ok {
		return false
	}
	path, ok := NormalPath(m.clientPath)
	m.additional = string(given)
	return ok && path == m.path
}

func (r *Request) readV2(m *message) bool {
	timestamp, nonce, isPair := strings.Cut(r.IdempotencyKey, ".")
	at, isTime := readTimestamp(timestamp)
	m.protocol, m.clientID, m.clientPath = algorithm.SessionV2, r.ClientID, r.Path
	m.timestamp, m.nonceID, m.additional = at, idOfNonce(nonce), aadV2(timestamp, nonce, r.Kid, r.ClientID)
	isBody := m.setSealed(r.Body)
	return isPair && isTime && isBody && r.IV+r.Tag+r.AAD+r.Nonce+r.Timestamp == "" && isClientID(r.ClientID) && isRequestNonce(nonce)
}

// setSealed sets IV, ciphertext and tag of a body that has them all, and reports whether it has.
func (m *message) setSealed(body []byte) bool {
	if len(body) < ivSize+tagSize {
		m.sealed = make([]byte, ivSize+tagSize)
		return false
	}
	m.sealed = body
	return true
}

// decodeAll fills a slice with the bytes that a text has in base64, and reports whether it has as many.
func decodeAll(to []byte, text string) bool {
	if len(text) != base64.StdEncoding.EncodedLen(len(to)) {
		return false
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	return err == nil && copy(to, decoded) == len(to) && len(decoded) == len(to)
}

// readTimestamp reads decimal digits that begin with no zero, so that a time has one text.
func readTimestamp(text string) (int64, bool) {
	if text == "" || len(text) > maxTimestamp || text[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil
}

func isMethod(text string) bool {
	return text != "" && len(text) <= maxMethod && only(text, func(c byte) bool { return c >= 'A' && c <= 'Z' })
}

func isRequestNonce(text string) bool { return isToken(text, "-_") && !isReplyNonce(text) }

func isClientID(text string) bool { return isToken(text, "-_.:") }

// isToken reports whether a text has 1 to 64 letters, digits and other characters.
func isToken(text, others string) bool {
	return text != "" && len(text) <= maxToken && only(text, func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(others, c) >= 0
	})
}

func only(text string, allowed func(byte) bool) bool {
	for _, c := range []byte(text) {
		if !allowed(c) {
			return false
		}
	}
	return true
}
