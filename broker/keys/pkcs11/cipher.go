// SPDX-License-Identifier: Apache-2.0

//go:build pkcs11

package pkcs11

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/pkcs11"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// seal encrypts with AES-GCM. It returns the nonce, the ciphertext and the tag, one after the
// other.
func (k *key) seal(ctx context.Context, plaintext, additional []byte) ([]byte, error) {
	return do(ctx, k.provider, func(s *session) ([]byte, error) {
		return with(s, k.name, func(object pkcs11.ObjectHandle) ([]byte, error) {
			nonce := make([]byte, engine.NonceSize)
			if _, err := rand.Read(nonce); err != nil {
				return nil, err
			}
			settings := pkcs11.NewGCMParams(nonce, additional, 8*engine.FullTagSize)
			defer settings.Free()
			if err := s.module.EncryptInit(s.handle, []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_AES_GCM, settings)}, object); err != nil {
				return nil, err
			}
			sealed, err := s.module.Encrypt(s.handle, plaintext)
			if err != nil {
				return nil, err
			}
			used := settings.IV() // some devices make their own nonce
			if len(used) != engine.NonceSize || len(sealed) != len(plaintext)+engine.FullTagSize {
				return nil, fmt.Errorf("%w: the library encrypted %d bytes with a nonce of %d bytes to %d, expected a nonce of %d bytes and a tag of %d", keys.ErrUnusable,
					len(plaintext), len(used), len(sealed), engine.NonceSize, engine.FullTagSize)
			}
			return slices.Concat(used, sealed), nil
		})
	})
}

// open is the inverse of seal. sealed is the ciphertext and the tag.
func (k *key) open(ctx context.Context, nonce, sealed, additional []byte) ([]byte, error) {
	return do(ctx, k.provider, func(s *session) ([]byte, error) {
		return with(s, k.name, func(object pkcs11.ObjectHandle) ([]byte, error) {
			settings := pkcs11.NewGCMParams(nonce, additional, 8*engine.FullTagSize)
			defer settings.Free()
			if err := s.module.DecryptInit(s.handle, []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_AES_GCM, settings)}, object); err != nil {
				return nil, err
			}
			plaintext, err := s.module.Decrypt(s.handle, sealed)
			return plaintext, s.unprotected(err)
		})
	})
}

// aesCipher implements keys.RemoteCipher.
type aesCipher struct {
	key
	size int
}

// KeySize implements keys.RemoteCipher.
func (c *aesCipher) KeySize() int { return c.size }

// SealRandom implements keys.RemoteCipher.
func (c *aesCipher) SealRandom(ctx context.Context, plaintext, additional []byte) (nonce, ciphertext, tag []byte, err error) {
	sealed, err := c.seal(ctx, plaintext, additional)
	if err != nil {
		return nil, nil, nil, err
	}
	end := len(sealed) - engine.FullTagSize
	return sealed[:engine.NonceSize:engine.NonceSize], sealed[engine.NonceSize:end:end], sealed[end:], nil
}

// Open implements keys.RemoteCipher.
func (c *aesCipher) Open(ctx context.Context, nonce, ciphertext, tag, additional []byte) ([]byte, error) {
	if len(nonce) != engine.NonceSize || len(tag) != engine.FullTagSize {
		return nil, keys.ErrInvalidCiphertext
	}
	return c.open(ctx, nonce, slices.Concat(ciphertext, tag), additional)
}

// aesWrapper implements keys.Wrapper. Wrapped keys have the same format as with a key in memory.
type aesWrapper struct {
	key
	padded uint // the mechanism of AES key wrap with padding, 0 for none
}

// Algorithms implements keys.Wrapper.
func (w *aesWrapper) Algorithms() []string {
	names := []string{algorithm.WrapAESGCM.String(), algorithm.WrapAESKW.String()}
	if w.padded != 0 {
		names = append(names, algorithm.WrapAESKWP.String())
	}
	return names
}

// keyWrap returns a variant of AES key wrap.
func (w *aesWrapper) keyWrap(name string) (keyWrap, error) {
	switch {
	case name == algorithm.WrapAESKW.String():
		return keyWrap{algorithm.WrapAESKW, false, pkcs11.CKM_AES_KEY_WRAP}, nil
	case name == algorithm.WrapAESKWP.String() && w.padded != 0:
		return keyWrap{algorithm.WrapAESKWP, true, w.padded}, nil
	}
	return keyWrap{}, fmt.Errorf("%w: the key %s of the token wraps with %s, found %q", keys.ErrUnusable, w.name.label, strings.Join(w.Algorithms(), ", "), name)
}

// Wrap implements keys.Wrapper.
func (w *aesWrapper) Wrap(ctx context.Context, name string, dataKey, additional []byte) ([]byte, error) {
	if name == algorithm.WrapAESGCM.String() {
		return w.seal(ctx, dataKey, additional)
	}
	how, err := w.keyWrap(name)
	if err != nil {
		return nil, err
	}
	return w.wrapKW(ctx, how, dataKey, additional)
}

// Unwrap implements keys.Wrapper.
func (w *aesWrapper) Unwrap(ctx context.Context, name string, wrapped, additional []byte) ([]byte, error) {
	if name == algorithm.WrapAESGCM.String() {
		if len(wrapped) < engine.NonceSize+engine.FullTagSize {
			return nil, keys.ErrInvalidCiphertext
		}
		return w.open(ctx, wrapped[:engine.NonceSize], wrapped[engine.NonceSize:], additional)
	}
	how, err := w.keyWrap(name)
	if err != nil {
		return nil, err
	}
	return w.unwrapKW(ctx, how, wrapped, additional)
}
