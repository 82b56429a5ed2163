// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"strings"
)

// CipherPolicy is what a profile says about EncryptData and DecryptData. The
// algorithm is AES-GCM (NIST SP 800-38D).
type CipherPolicy struct {
	keySize     int
	tagSize     int
	randomNonce bool
	keys        *KeyPolicy
}

// wholeTagLength is that of AES-GCM, in bits.
const wholeTagLength = 128

// TagBits is the length of the authentication tag in bits. Released brokers make
// and take whole tags whatever TagLength says, and what they encrypted has to be
// decrypted here.
func (e *EncryptData) TagBits() int { return cmp.Or(e.ShortTagLength, wholeTagLength) }

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
	return &CipherPolicy{
		keySize:     e.KeySize / 8,
		tagSize:     e.TagBits() / 8,
		randomNonce: strings.EqualFold(e.NonceStrategy, "random"),
		keys:        compileKeyIDs(e.KeyIDs, o.manager),
	}
}
