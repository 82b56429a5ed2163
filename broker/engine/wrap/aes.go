// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"crypto/aes"
	"crypto/cipher"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// AES wraps and unwraps keys with an AES key.
type AES struct {
	block cipher.Block
	gcm   *engine.AESGCM
}

var _ Unwrapper = (*AES)(nil)

// NewAES returns the AES key of 16, 24 or 32 bytes. It keeps no reference to key, so the caller
// can overwrite it. The error continues the sentence "the key …".
func NewAES(key []byte) (*AES, error) {
	gcm, err := engine.NewAESGCM(key)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &AES{block, gcm}, nil
}

// Cipher returns the cipher with the same key. Both count their random nonces together.
func (a *AES) Cipher() engine.Cipher { return a.gcm }

// Wrap implements Wrapper.
func (a *AES) Wrap(with algorithm.Wrapping, key, additional []byte) ([]byte, error) {
	if err := check(with, algorithm.AESWrappingKey, additional); err != nil {
		return nil, err
	}
	if err := checkSize(key); err != nil {
		return nil, err
	}
	switch with {
	case algorithm.WrapAESKW:
		if len(key)%semiblock != 0 {
			return nil, inputError("found a key of %d bytes, expected a multiple of %d for %s; %s wraps keys of other sizes", len(key), semiblock, with, algorithm.WrapAESKWP)
		}
		return wrapKW(a.block, key), nil
	case algorithm.WrapAESKWP:
		return wrapKWP(a.block, key), nil
	default:
		nonce, ciphertext, tag, err := a.gcm.SealRandom(key, additional)
		if err != nil {
			return nil, err
		}
		return slices.Concat(nonce, ciphertext, tag), nil
	}
}

// Unwrap implements Unwrapper.
func (a *AES) Unwrap(with algorithm.Wrapping, wrapped, additional []byte) ([]byte, error) {
	if err := check(with, algorithm.AESWrappingKey, additional); err != nil {
		return nil, err
	}
	if len(wrapped) > maxWrappedSize {
		return nil, ErrUnwrap
	}
	if with == algorithm.WrapAESGCM {
		if len(wrapped) < engine.NonceSize+engine.FullTagSize {
			return nil, ErrUnwrap
		}
		nonce, rest := wrapped[:engine.NonceSize], wrapped[engine.NonceSize:]
		end := len(rest) - engine.FullTagSize
		return unwrapped(a.gcm.Open(nonce, rest[:end], rest[end:], additional))
	}
	if len(wrapped)%semiblock != 0 || len(wrapped) < 3*semiblock {
		return nil, ErrUnwrap
	}
	if with == algorithm.WrapAESKW {
		return unwrapped(unwrapKW(a.block, wrapped))
	}
	return unwrapped(unwrapKWP(a.block, wrapped))
}
