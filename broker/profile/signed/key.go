// SPDX-License-Identifier: Apache-2.0

package signed

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// keyPrefix is the name of the algorithm in the text form of a key.
const keyPrefix = "ed25519:"

// spkiPrefix is the beginning of a SubjectPublicKeyInfo of Ed25519 in DER (RFC 8410). Only
// the 32 bytes of the key follow.
var spkiPrefix = []byte{0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00}

// FormatKey returns the text form of a public key: "ed25519:" and the standard base64 of its
// 32 bytes.
func FormatKey(key ed25519.PublicKey) string {
	return keyPrefix + base64.StdEncoding.EncodeToString(key)
}

// ParseKey returns the public key of a text form. The error does not quote the text, which
// may be a private key by mistake.
func ParseKey(text string) (ed25519.PublicKey, error) {
	encoded, ok := strings.CutPrefix(text, keyPrefix)
	if !ok {
		return nil, fmt.Errorf("a key does not begin with %q, expected %[1]q and the base64 of the 32 bytes of an Ed25519 public key", keyPrefix)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("a key is not standard base64 after %q, expected the base64 of the 32 bytes of an Ed25519 public key", keyPrefix)
	}
	if len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("a key has %d bytes, expected the 32 of an Ed25519 public key", len(key))
	}
	return key, nil
}

// KeyID returns the id of a public key: the first 16 hexadecimal digits of the SHA-256 of its
// SubjectPublicKeyInfo in DER.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.New()
	sum.Write(spkiPrefix)
	sum.Write(key)
	return hex.EncodeToString(sum.Sum(nil))[:16]
}
