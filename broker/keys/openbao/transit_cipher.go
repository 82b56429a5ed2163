// SPDX-License-Identifier: Apache-2.0

package openbao

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// encrypt has Transit encrypt a plaintext. For AES it returns the nonce, the ciphertext and the
// tag, one after the other.
func (k *transitKey) encrypt(ctx context.Context, plaintext, additional []byte) ([]byte, error) {
	b := newBody(len(plaintext) + len(additional))
	b.base64("plaintext", plaintext)
	if len(additional) > 0 {
		b.base64("associated_data", additional)
	}
	b.number("key_version", k.version)
	var reply struct {
		Data struct {
			Ciphertext string `json:"ciphertext"`
		} `json:"data"`
	}
	if err := k.post(ctx, "encrypt", "", b, &reply); err != nil {
		return nil, err
	}
	return k.decode(reply.Data.Ciphertext)
}

// decrypt is the inverse of encrypt.
func (k *transitKey) decrypt(ctx context.Context, encrypted, additional []byte) ([]byte, error) {
	b := newBody(len(encrypted) + len(additional))
	b.ciphertext("ciphertext", k.version, encrypted)
	if len(additional) > 0 {
		b.base64("associated_data", additional)
	}
	var reply struct {
		Data struct {
			Plaintext []byte `json:"plaintext"`
		} `json:"data"`
	}
	if err := k.post(ctx, "decrypt", "", b, &reply); err != nil {
		if errors.Is(err, errRefused) {
			return nil, keys.ErrInvalidCiphertext
		}
		return nil, err
	}
	return reply.Data.Plaintext, nil
}

// transitCipher implements keys.RemoteCipher.
type transitCipher struct {
	transitKey
	size int
	// older are versions of the key that data may have been encrypted with before, the newest
	// first. The list is empty if the caller has named a version.
	older []int
}

// KeySize implements keys.RemoteCipher.
func (c *transitCipher) KeySize() int { return c.size }

// SealRandom implements keys.RemoteCipher.
func (c *transitCipher) SealRandom(ctx context.Context, plaintext, additional []byte) (nonce, ciphertext, tag []byte, err error) {
	sealed, err := c.encrypt(ctx, plaintext, additional)
	if err != nil {
		return nil, nil, nil, err
	}
	end := len(sealed) - engine.FullTagSize
	if end-engine.NonceSize != len(plaintext) {
		return nil, nil, nil, fmt.Errorf("%w: the server encrypted %d bytes with the key %s to %d, expected a nonce and a tag more", keys.ErrUnusable, len(plaintext), c.id, len(sealed))
	}
	return sealed[:engine.NonceSize:engine.NonceSize], sealed[engine.NonceSize:end:end], sealed[end:], nil
}

// Open implements keys.RemoteCipher. The arguments do not say which version of the key they
// belong to, so Open also tries older versions.
func (c *transitCipher) Open(ctx context.Context, nonce, ciphertext, tag, additional []byte) ([]byte, error) {
	if len(tag) != engine.FullTagSize {
		return nil, fmt.Errorf("%w: Transit checks tags of %d bytes only, found one of %d", keys.ErrUnusable, engine.FullTagSize, len(tag))
	}
	sealed := slices.Concat(nonce, ciphertext, tag)
	plaintext, err := c.decrypt(ctx, sealed, additional)
	if !errors.Is(err, keys.ErrInvalidCiphertext) {
		return plaintext, err
	}
	for _, version := range c.older {
		before := transitKey{c.transit, c.id, version}
		if plaintext, err = before.decrypt(ctx, sealed, additional); !errors.Is(err, keys.ErrInvalidCiphertext) {
			return plaintext, err
		}
	}
	return nil, keys.ErrInvalidCiphertext
}

// transitWrapper implements keys.Wrapper. The wrapped bytes are the output of the algorithm,
// without the prefix of Transit.
type transitWrapper struct{ transitKey }

// Algorithms implements keys.Wrapper.
func (w *transitWrapper) Algorithms() []string { return []string{algorithm.WrapAESGCM.String()} }

// Wrap implements keys.Wrapper.
func (w *transitWrapper) Wrap(ctx context.Context, name string, dataKey, additional []byte) ([]byte, error) {
	if err := w.check(name); err != nil {
		return nil, err
	}
	return w.encrypt(ctx, dataKey, additional)
}

// Unwrap implements keys.Wrapper.
func (w *transitWrapper) Unwrap(ctx context.Context, name string, wrapped, additional []byte) ([]byte, error) {
	if err := w.check(name); err != nil {
		return nil, err
	}
	return w.decrypt(ctx, wrapped, additional)
}

func (w *transitWrapper) check(name string) error {
	if found, ok := algorithm.FindWrapping(name); !ok || found != algorithm.WrapAESGCM {
		return fmt.Errorf("%w: the key %s wraps with %s, found %q", keys.ErrUnusable, w.id, algorithm.WrapAESGCM, name)
	}
	return nil
}
