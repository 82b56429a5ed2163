// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Sizes of AES-GCM in bytes (NIST SP 800-38D, sections 5.2.1.1 and 5.2.1.2).
const (
	// NonceSize is the size of nonces. AES-GCM hashes nonces of other sizes, so that fewer
	// of them are allowed.
	NonceSize = 12
	// FullTagSize is the size of a tag of full length.
	FullTagSize = 16
)

// maxRandomNonces is the maximum number of encryptions with random nonces under one key. After
// 2^32 of them, the probability that two are equal is 2^-32, the most that NIST SP 800-38D,
// section 8.3, allows.
const maxRandomNonces = 1 << 32

// Errors of a Cipher.
var (
	// ErrAuthentication means that key, nonce, additional data, ciphertext and tag do not
	// belong together. Nobody can find out which of them is wrong.
	ErrAuthentication = errors.New("engine: the ciphertext does not authenticate")

	// ErrExhausted means that a key has encrypted [maxRandomNonces] times.
	ErrExhausted = errors.New("engine: the key has been used as often as random nonces allow")
)

// Cipher encrypts and decrypts with AES-GCM and one key, which may be outside of the broker.
// It is safe for concurrent use.
type Cipher interface {
	// KeySize returns the size of the key in bytes.
	KeySize() int
	// Seal encrypts with a nonce of NonceSize bytes, which must never be used again with
	// this key. The tag has FullTagSize bytes.
	Seal(nonce, plaintext, additional []byte) (ciphertext, tag []byte, err error)
	// SealRandom encrypts with a random nonce, which it returns. It returns ErrExhausted
	// after maxRandomNonces calls.
	SealRandom(plaintext, additional []byte) (nonce, ciphertext, tag []byte, err error)
	// Open decrypts with a tag of 12 to 16 bytes. It returns ErrAuthentication if the
	// arguments and the key do not belong together.
	Open(nonce, ciphertext, tag, additional []byte) (plaintext []byte, err error)
}

// AESGCM is a Cipher whose key is in the memory of the broker.
type AESGCM struct {
	size   int
	block  cipher.Block
	given  mode // the caller gives the nonce
	random mode // the mode makes the nonce
	used   atomic.Uint64
}

// mode is one of the two modes of a cipher. The cipher makes a mode when it first uses it. Each
// mode costs a key schedule, and a key of a request is used in one mode only.
type mode struct {
	once sync.Once
	aead cipher.AEAD
	err  error
}

func (m *mode) of(block cipher.Block, start func(cipher.Block) (cipher.AEAD, error)) (cipher.AEAD, error) {
	m.once.Do(func() { m.aead, m.err = start(block) })
	return m.aead, m.err
}

// NewAESGCM returns a cipher with a key of 16, 24 or 32 bytes. It keeps no reference to the
// key, so the caller can overwrite the key. Its error continues the sentence "the key …".
func NewAESGCM(key []byte) (*AESGCM, error) {
	switch len(key) {
	case 16, 24, 32:
	default:
		return nil, fmt.Errorf("has %d bytes, expected the 16, 24 or 32 bytes of an AES key", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &AESGCM{size: len(key), block: block}, nil
}

// KeySize implements Cipher.
func (c *AESGCM) KeySize() int { return c.size }

// Seal implements Cipher.
func (c *AESGCM) Seal(nonce, plaintext, additional []byte) (ciphertext, tag []byte, err error) {
	if len(nonce) != NonceSize {
		return nil, nil, fmt.Errorf("engine: the nonce has %d bytes, expected %d", len(nonce), NonceSize)
	}
	aead, err := c.given.of(c.block, cipher.NewGCM)
	if err != nil {
		return nil, nil, err
	}
	sealed := aead.Seal(make([]byte, 0, len(plaintext)+FullTagSize), nonce, plaintext, additional)
	return sealed[:len(plaintext):len(plaintext)], sealed[len(plaintext):], nil
}

// SealRandom implements Cipher. The nonce comes from the generator inside Go's
// cryptographic module, as FIPS 140-3 requires (implementation guidance C.H).
func (c *AESGCM) SealRandom(plaintext, additional []byte) (nonce, ciphertext, tag []byte, err error) {
	aead, err := c.random.of(c.block, cipher.NewGCMWithRandomNonce)
	if err != nil {
		return nil, nil, nil, err
	}
	if c.used.Add(1) > maxRandomNonces {
		c.used.Add(^uint64(0)) // refused calls do not count, so the count cannot overflow
		return nil, nil, nil, ErrExhausted
	}
	sealed := aead.Seal(make([]byte, 0, NonceSize+len(plaintext)+FullTagSize), nil, plaintext, additional)
	end := NonceSize + len(plaintext)
	return sealed[:NonceSize:NonceSize], sealed[NonceSize:end:end], sealed[end:], nil
}

// Open implements Cipher.
func (c *AESGCM) Open(nonce, ciphertext, tag, additional []byte) ([]byte, error) {
	if len(nonce) != NonceSize {
		return nil, fmt.Errorf("engine: the nonce has %d bytes, expected %d", len(nonce), NonceSize)
	}
	var aead cipher.AEAD
	var err error
	if len(tag) == FullTagSize {
		aead, err = c.given.of(c.block, cipher.NewGCM)
	} else {
		aead, err = cipher.NewGCMWithTagSize(c.block, len(tag))
	}
	if err != nil {
		return nil, err
	}
	joined := make([]byte, 0, len(ciphertext)+len(tag))
	joined = append(append(joined, ciphertext...), tag...)
	plaintext, err := aead.Open(joined[:0], nonce, joined, additional)
	if err != nil {
		return nil, ErrAuthentication
	}
	return plaintext, nil
}

// Sealed is the result of an encryption.
type Sealed struct {
	Nonce, Ciphertext, Tag []byte
}

// Encrypt encrypts by the rules of a profile. Unless the nonce strategy of the profile is
// "random", the caller has to give a nonce of NonceSize bytes. Otherwise nonce has to be
// empty. additional is authenticated and not encrypted.
func Encrypt(policy *profile.CipherPolicy, key Cipher, nonce, plaintext, additional []byte) (Sealed, error) {
	if err := checkKeySize(policy, key); err != nil {
		return Sealed{}, err
	}
	var s Sealed
	var err error
	if policy.RandomNonce() {
		if len(nonce) > 0 {
			return Sealed{}, inputError("encryptMetadata.nonce", "has %d bytes, expected none: with NonceStrategy random the broker makes the nonce", len(nonce))
		}
		s.Nonce, s.Ciphertext, s.Tag, err = key.SealRandom(plaintext, additional)
	} else {
		if err := checkNonce("encryptMetadata.nonce", nonce); err != nil {
			return Sealed{}, err
		}
		s.Nonce = nonce
		s.Ciphertext, s.Tag, err = key.Seal(nonce, plaintext, additional)
	}
	if errors.Is(err, ErrExhausted) {
		return Sealed{}, preconditionError("the key has encrypted 2^32 times with random nonces, the most that NIST SP 800-38D allows; replace the key")
	}
	if err != nil {
		return Sealed{}, err
	}
	// A short tag is the beginning of the full tag (NIST SP 800-38D, section 7.1).
	s.Tag = s.Tag[:policy.TagSize()]
	return s, nil
}

// Decrypt decrypts by the rules of a profile. If the input does not authenticate, the error
// does not say why.
func Decrypt(policy *profile.CipherPolicy, key Cipher, sealed Sealed, additional []byte) ([]byte, error) {
	if err := checkKeySize(policy, key); err != nil {
		return nil, err
	}
	if err := checkNonce("decryptMetadata.nonce", sealed.Nonce); err != nil {
		return nil, err
	}
	if len(sealed.Tag) != policy.TagSize() {
		return nil, inputError("decryptMetadata.tag", "has %d bytes, expected the %d that tags of this profile have", len(sealed.Tag), policy.TagSize())
	}
	plaintext, err := key.Open(sealed.Nonce, sealed.Ciphertext, sealed.Tag, additional)
	if errors.Is(err, ErrAuthentication) {
		return nil, inputError("ciphertext", "does not authenticate with this key, nonce, aad and tag")
	}
	return plaintext, err
}

func checkKeySize(policy *profile.CipherPolicy, key Cipher) error {
	if key.KeySize() != policy.KeySize() {
		return inputError("keySource", "is a key of %d bits, expected one of %d bits", 8*key.KeySize(), 8*policy.KeySize())
	}
	return nil
}

func checkNonce(field string, nonce []byte) error {
	if len(nonce) != NonceSize {
		return inputError(field, "has %d bytes, expected %d", len(nonce), NonceSize)
	}
	return nil
}
