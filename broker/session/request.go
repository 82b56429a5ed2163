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
	nonce    string
	// timestamp is in milliseconds since 1970.
	timestamp int64
	// sealed is IV, ciphertext and tag.
	sealed     []byte
	additional string
	// path is the normal form, and clientPath what the client authenticates.
	path, clientPath string
	// native is whether the session has a native version. protocol is zero then, because the message
	// does not say which. epoch and number are those of its sequence.
	native        bool
	epoch, number int64
}

// read reads a request. It reports false if it does not have the form of the protocol. A request with
// X-Idempotency-Key has version 2, and one with X-Sequence a native version.
func (r *Request) read() (m message, ok bool) {
	if m.id, ok = idOfKid(r.Kid); !ok || r.EncAlg != algorithm.SessionCipher || !isMethod(r.Method) {
		return m, false
	}
	if m.path, ok = NormalPath(r.Path); !ok {
		return m, false
	}
	if r.Sequence != "" {
		return m, r.readNative(&m)
	}
	if r.IdempotencyKey != "" {
		return m, r.readV2(&m)
	}
	return m, r.readV1(&m)
}

func (r *Request) readV1(m *message) (ok bool) {
	m.protocol, m.nonce = algorithm.SessionV1, r.Nonce
	if m.timestamp, ok = readTimestamp(r.Timestamp); !ok || !isRequestNonce(r.Nonce) || r.ClientID != "" {
		return false
	}
	strict := base64.StdEncoding.Strict()
	m.sealed = make([]byte, 0, ivSize+strict.DecodedLen(len(r.Body))+tagSize)
	if m.sealed, ok = appendDecoded(m.sealed, r.IV, ivSize); !ok {
		return false
	}
	n, err := strict.Decode(m.sealed[ivSize:cap(m.sealed)], r.Body)
	if err != nil || bytes.ContainsAny(r.Body, "\r\n") { // which the package base64 overlooks
		return false
	}
	if m.sealed, ok = appendDecoded(m.sealed[:ivSize+n], r.Tag, tagSize); !ok {
		return false
	}
	return r.readAAD(m)
}

// readAAD sets what the request authenticates. The path in X-AAD may be written in another way than the
// one that was received, because proxies normalise paths, but it has to be the same path.
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
	m.protocol, m.clientID, m.clientPath = algorithm.SessionV2, r.ClientID, r.Path
	timestamp, nonce, ok := strings.Cut(r.IdempotencyKey, ".")
	if !ok || r.IV+r.Tag+r.AAD+r.Nonce+r.Timestamp != "" || !isClientID(r.ClientID) || !isRequestNonce(nonce) {
		return false
	}
	if m.timestamp, ok = readTimestamp(timestamp); !ok || len(r.Body) < ivSize+tagSize {
		return false
	}
	m.nonce, m.sealed, m.additional = nonce, r.Body, aadV2(timestamp, nonce, r.Kid, r.ClientID)
	return true
}

// appendDecoded appends size bytes that a text has in base64.
func appendDecoded(to []byte, text string, size int) ([]byte, bool) {
	if len(text) != base64.StdEncoding.EncodedLen(size) {
		return to, false
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(decoded) != size {
		return to, false
	}
	return append(to, decoded...), true
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
