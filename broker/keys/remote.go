// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// RemoteSigner signs with a private key that stays in its key manager.
type RemoteSigner interface {
	// Sign signs a digest, or the message itself if opts.HashFunc() is 0, as
	// [crypto.Signer] says.
	Sign(ctx context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error)
}

// RemoteMessageSigner is a RemoteSigner that takes messages. Some key managers take nothing
// else.
type RemoteMessageSigner interface {
	RemoteSigner
	// SignMessage signs a message, as [crypto.MessageSigner] says.
	SignMessage(ctx context.Context, message []byte, opts crypto.SignerOpts) ([]byte, error)
}

// RemoteCipher encrypts with an AES key that stays in its key manager. See [engine.Cipher].
type RemoteCipher interface {
	// KeySize returns the size of the key in bytes.
	KeySize() int
	// SealRandom encrypts with AES-GCM and a random nonce. The tag has 16 bytes.
	SealRandom(ctx context.Context, plaintext, additional []byte) (nonce, ciphertext, tag []byte, err error)
	// Open decrypts. It returns [ErrInvalidCiphertext] if the arguments and the key do not
	// belong together.
	Open(ctx context.Context, nonce, ciphertext, tag, additional []byte) (plaintext []byte, err error)
}

// RemoteDecrypter decrypts with an RSA key that stays in its key manager.
type RemoteDecrypter interface {
	// DecryptOAEP decrypts RSA-OAEP (RFC 8017, section 7.1) without a label. hash is the digest
	// of OAEP and of its mask. The caller clears the plaintext after use. The error is
	// [ErrInvalidCiphertext] if the ciphertext and the key do not belong together.
	DecryptOAEP(ctx context.Context, hash crypto.Hash, ciphertext []byte) (plaintext []byte, err error)
}

// RemoteExchanger agrees on secrets with an EC key that stays in its key manager.
type RemoteExchanger interface {
	// ECDH returns the secret that the key shares with a public key on the same curve: the x
	// coordinate (NIST SP 800-56A, section 5.7.1.2). The caller clears it after use.
	ECDH(ctx context.Context, other *ecdh.PublicKey) (secret []byte, err error)
}

// Wrapper wraps data keys with one version of a key. It is safe for concurrent use.
//
// If it does not implement LocalWrapper, it waits for a key manager, and the broker caches the
// unwrapped data keys for a short time.
type Wrapper interface {
	// Algorithms returns the names of the algorithms that the key wraps with, as profiles have
	// them.
	Algorithms() []string
	// Wrap encrypts a data key. context is authenticated and not encrypted. It has to be empty
	// for an algorithm without such input. The error is a [wrap.InputError] if the data key or
	// the context does not fit the algorithm.
	Wrap(ctx context.Context, algorithm string, dataKey, context []byte) (wrapped []byte, err error)
	// Unwrap returns the data key, which the caller clears after use. It returns
	// [ErrInvalidCiphertext] if the arguments and the key do not belong together.
	Unwrap(ctx context.Context, algorithm string, wrapped, context []byte) (dataKey []byte, err error)
}

// bound returns a signer whose requests end with ctx.
func bound(ctx context.Context, public crypto.PublicKey, remote RemoteSigner) crypto.Signer {
	s := boundSigner{ctx, public, remote}
	if messages, ok := remote.(RemoteMessageSigner); ok {
		return boundMessageSigner{s, messages}
	}
	return s
}

type boundSigner struct {
	ctx    context.Context //nolint:containedctx // crypto.Signer has no context, and the signer lives as long as one call
	public crypto.PublicKey
	remote RemoteSigner
}

// Public implements crypto.Signer.
func (s boundSigner) Public() crypto.PublicKey { return s.public }

// Sign implements crypto.Signer. The key manager has its own source of random numbers.
func (s boundSigner) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	signature, err := s.remote.Sign(s.ctx, digest, opts)
	return s.checked(digest, opts, signature, err)
}

// checked returns the signature if it is valid. A key manager may sign with other parameters than
// requested, for example with another length of the salt.
func (s boundSigner) checked(digest []byte, opts crypto.SignerOpts, signature []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	valid := false
	switch public := s.public.(type) {
	case *rsa.PublicKey:
		if pss, ok := opts.(*rsa.PSSOptions); ok {
			valid = rsa.VerifyPSS(public, opts.HashFunc(), digest, signature, pss) == nil
		} else {
			valid = rsa.VerifyPKCS1v15(public, opts.HashFunc(), digest, signature) == nil
		}
	case *ecdsa.PublicKey:
		valid = ecdsa.VerifyASN1(public, digest, signature)
	case ed25519.PublicKey:
		valid = ed25519.Verify(public, digest, signature)
	}
	if !valid {
		return nil, fmt.Errorf("%w: the signature of its key manager is not valid for the public key, the digest and the padding that were asked for", ErrUnusable)
	}
	return signature, nil
}

type boundMessageSigner struct {
	boundSigner
	messages RemoteMessageSigner
}

// SignMessage implements crypto.MessageSigner.
func (s boundMessageSigner) SignMessage(_ io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	signature, err := s.messages.SignMessage(s.ctx, message, opts)
	digest := message
	if hash := opts.HashFunc(); hash != 0 {
		state := hash.New()
		state.Write(message)
		digest = state.Sum(nil)
	}
	return s.checked(digest, opts, signature, err)
}

type boundCipher struct {
	ctx    context.Context //nolint:containedctx // as in boundSigner
	remote RemoteCipher
}

// KeySize implements engine.Cipher.
func (c boundCipher) KeySize() int { return c.remote.KeySize() }

// Seal implements engine.Cipher. It fails, because key managers choose the nonces.
func (c boundCipher) Seal(_, _, _ []byte) (ciphertext, tag []byte, err error) {
	return nil, nil, fmt.Errorf("%w: its key manager makes the nonces, expected a profile with NonceStrategy random", ErrUnusable)
}

// SealRandom implements engine.Cipher.
func (c boundCipher) SealRandom(plaintext, additional []byte) (nonce, ciphertext, tag []byte, err error) {
	return c.remote.SealRandom(c.ctx, plaintext, additional)
}

// Open implements engine.Cipher.
func (c boundCipher) Open(nonce, ciphertext, tag, additional []byte) ([]byte, error) {
	plaintext, err := c.remote.Open(c.ctx, nonce, ciphertext, tag, additional)
	if errors.Is(err, ErrInvalidCiphertext) {
		return nil, engine.ErrAuthentication
	}
	return plaintext, err
}

var _ engine.Cipher = boundCipher{}
