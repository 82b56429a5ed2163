// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// Sizes of A256GCM in bytes.
const (
	keySize = 32
	ivSize  = 12
	tagSize = 16
)

const (
	// kidPrefix comes before the id of a session in the header X-Kid.
	kidPrefix = "session:"
	// idPrefix comes before the 32 lower-case hexadecimal digits of an id.
	idPrefix = "S-"
	idSize   = len(idPrefix) + 32
)

// newID returns the id of a new session.
func newID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never returns an error
	return idPrefix + hex.EncodeToString(random[:])
}

// idOfKid returns the id of a session in the header X-Kid.
func idOfKid(kid string) (string, bool) {
	id, ok := strings.CutPrefix(kid, kidPrefix)
	if !ok || len(id) != idSize || !strings.HasPrefix(id, idPrefix) {
		return "", false
	}
	for _, c := range []byte(id[len(idPrefix):]) {
		if hexDigit(c) < 0 || c >= 'A' && c <= 'F' {
			return "", false
		}
	}
	return id, true
}

// deriveKey returns the key of a session, which the caller overwrites: HKDF with SHA-256 (RFC 5869) over
// the X coordinate of the shared point. The salt is the id. clientID is empty in version 1.
func deriveKey(own *ecdh.PrivateKey, peer *ecdh.PublicKey, id, clientID string) ([]byte, error) {
	secret, err := own.ECDH(peer)
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	info := "SESSION|" + algorithm.SessionCipher + "|AUTH"
	if clientID != "" {
		info = "SESSION|" + algorithm.SessionCipher + "|" + clientID
	}
	return hkdf.Key(sha256.New, secret, []byte(id), info, keySize)
}

// newGCM returns AES-GCM whose output has a random IV in front, which the module of Go makes, as FIPS
// 140-3 demands.
func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// requestAAD is what a request of version 1 authenticates.
func requestAAD(method, path, timestamp, nonce, kid string) string {
	return method + "|" + path + "|" + timestamp + "|" + nonce + "|" + kid
}

// replyAAD is what a reply of version 1 authenticates. It cannot be the AAD of a request, because a request begins with its method,
// and no method has digits.
func replyAAD(path, timestamp, nonce, kid string) string {
	return "200|" + path + "|" + timestamp + "|" + nonce + "|" + kid
}

// aadV2 is what requests and replies of version 2 authenticate.
func aadV2(timestamp, nonce, kid, clientID string) string {
	return timestamp + "|" + nonce + "|" + kid + "|" + clientID
}

// replyVersion is the version of the UUIDs that are nonces of replies: version 8, for custom use (RFC 9562, section 5.8). Requests
// cannot have it, so that a reply is not taken for a request: in version 2 of the protocol both have the same AAD and key.
const replyVersion = '8'

// versionAt is where a UUID has its version.
const versionAt = 14

// newReplyNonce returns the nonce of a reply.
func newReplyNonce() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never returns an error
	random[6] = random[6]&0x0f | 8<<4
	random[8] = random[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", random[:4], random[4:6], random[6:8], random[8:10], random[10:])
}

// isReplyNonce reports whether a nonce has the form of the nonce of a reply.
func isReplyNonce(nonce string) bool {
	const size, dashes = 36, 4
	return len(nonce) == size && nonce[versionAt] == replyVersion && strings.Count(nonce, "-") == dashes
}
