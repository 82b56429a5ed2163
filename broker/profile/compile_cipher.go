// SPDX-License-Identifier: Apache-2.0

package profile

import "strings"

// CipherPolicy is what a profile says about EncryptData and DecryptData. The
// algorithm is AES-GCM (NIST SP 800-38D).
type CipherPolicy struct {
	keySize     int
	tagSize     int
	randomNonce bool
	keys        *KeyPolicy
}

// defaultTagLength is the whole tag of AES-GCM, in bits.
const defaultTagLength = 128

// Algorithm is the algorithm's name as profiles and replies have it.
func (c *CipherPolicy) Algorithm() string { return "aes-gcm" }

// KeySize is the size of the key in bytes: 16, 24 or 32.
func (c *CipherPolicy) KeySize() int { return c.keySize }

// TagSize is the size of the authentication tag in bytes, 12 to 16.
func (c *CipherPolicy) TagSize() int { return c.tagSize }

// RandomNonce tells that the broker makes the nonce; otherwise the caller does,
// and answers for never using one twice with the same key.
func (c *CipherPolicy) RandomNonce() bool { return c.randomNonce }

// Keys says which of the broker's keys may be used, nil where requests bring
// their own.
func (c *CipherPolicy) Keys() *KeyPolicy { return c.keys }

func compileCipher(e *EncryptData, o compileOptions) *CipherPolicy {
	if e == nil {
		return nil
	}
	tagLength := e.TagLength
	if tagLength == 0 {
		tagLength = defaultTagLength
	}
	return &CipherPolicy{
		keySize:     e.KeySize / 8,
		tagSize:     tagLength / 8,
		randomNonce: strings.EqualFold(e.NonceStrategy, "random"),
		keys:        compileKeyIDs(e.KeyIDs, o.manager),
	}
}
