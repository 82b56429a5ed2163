// SPDX-License-Identifier: Apache-2.0

package wrapping

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// derive returns the AES-256 key that OpenTDF's clients derive from a shared secret of ECDH or X-Wing.
func derive(secret []byte) ([]byte, error) {
	salt := sha256.Sum256([]byte("TDF"))
	return hkdf.Key(sha256.New, secret, salt[:], "", 32)
}

// open decrypts what has the nonce in front.
func open(key, sealed []byte) ([]byte, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return aead.Open(nil, nil, sealed, nil)
}

func seal(key, plaintext []byte) ([]byte, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, plaintext, nil), nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Binds reports whether a policy is bound to a data key: binding is HMAC-SHA256 of the policy
// under the data key, in base64, of the bytes or of their hexadecimal digits. The time that it
// takes does not depend on where the HMAC differs.
func Binds(dataKey []byte, policy, binding string) bool {
	mac := hmac.New(sha256.New, dataKey)
	mac.Write([]byte(policy))
	expected := mac.Sum(nil)

	found, err := base64.StdEncoding.DecodeString(binding)
	if err == nil && len(found) == hex.EncodedLen(sha256.Size) {
		found, err = hex.DecodeString(string(found))
	}
	return err == nil && hmac.Equal(found, expected)
}
