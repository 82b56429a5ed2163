// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"fmt"

	mldsax509 "filippo.io/mldsa/x509"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
)

// Key is a key with its operations. It never changes and is safe for concurrent use.
//
// A key signs, encrypts or wraps either by itself or in its key manager.
type Key struct {
	id, version  string
	signer       crypto.Signer
	remoteSigner RemoteSigner
	public       crypto.PublicKey
	spki         [sha256.Size]byte
	chain        []*x509.Certificate
	cipher       engine.Cipher
	remoteCipher RemoteCipher
	wrapper      Wrapper
	decrypter    RemoteDecrypter
	exchanger    RemoteExchanger
	// authority reports whether the key belongs to a certificate authority, see OfAuthority.
	authority bool
}

// NewSigning returns a key that signs and verifies. chain may be empty. Its first certificate
// is the certificate of the key.
func NewSigning(id string, signer crypto.Signer, chain []*x509.Certificate) (*Key, error) {
	k, err := NewVerifying(id, signer.Public(), chain)
	if err != nil {
		return nil, err
	}
	k.signer, k.wrapper = signer, wrapperOf(wrap.NewPrivate(signer))
	return k, nil
}

// NewRemoteSigning returns a key whose private key stays in its key manager. chain may be
// empty.
func NewRemoteSigning(id string, public crypto.PublicKey, remote RemoteSigner, chain []*x509.Certificate) (*Key, error) {
	k, err := NewVerifying(id, public, chain)
	if err != nil {
		return nil, err
	}
	// Without a wrapper of the key manager, nobody could unwrap.
	k.remoteSigner, k.wrapper = remote, nil
	return k, nil
}

// NewOpening returns a key pair whose private key stays in its key manager and does not sign. The
// caller has to add a decrypter or an exchanger.
func NewOpening(id string, public crypto.PublicKey) (*Key, error) {
	k, err := NewVerifying(id, public, nil)
	if err != nil {
		return nil, err
	}
	k.wrapper = nil // nobody could unwrap, because the private key is not here
	return k, nil
}

// NewVerifying returns a key that verifies, and that wraps data keys for the owner of the private
// key.
func NewVerifying(id string, public crypto.PublicKey, chain []*x509.Certificate) (*Key, error) {
	spki, err := spkiSHA256(public)
	if err != nil {
		return nil, err
	}
	if len(chain) > 0 {
		certified, err := spkiSHA256(chain[0].PublicKey)
		if err != nil {
			return nil, fmt.Errorf("the certificate has a public key that cannot be used: %w", err)
		}
		if certified != spki {
			return nil, fmt.Errorf("the certificate belongs to another key")
		}
	}
	return &Key{
		id: id, public: public, spki: spki, chain: chain, authority: len(chain) > 0 && ofAuthority(chain[0]),
		wrapper: wrapperOf(wrap.NewPublic(public)),
	}, nil
}

// ofAuthority reports whether a certificate allows its key to sign certificates (RFC 5280,
// sections 4.2.1.3 and 4.2.1.9).
func ofAuthority(certificate *x509.Certificate) bool {
	return certificate.BasicConstraintsValid && certificate.IsCA || certificate.KeyUsage&x509.KeyUsageCertSign != 0
}

// NewAES returns an AES key of 16, 24 or 32 bytes, which encrypts, decrypts and wraps data keys.
// The caller can overwrite material afterwards. The error continues the sentence "the key …".
func NewAES(id string, material []byte) (*Key, error) {
	key, err := wrap.NewAES(material)
	if err != nil {
		return nil, err
	}
	return NewSymmetric(id, key.Cipher()).WithWrapper(localWrapper{key, algorithm.AESWrappingKey}), nil
}

// NewSymmetric returns a key that encrypts and decrypts, and does not wrap data keys.
func NewSymmetric(id string, cipher engine.Cipher) *Key { return &Key{id: id, cipher: cipher} }

// NewRemoteSymmetric returns a key that encrypts and decrypts in its key manager.
func NewRemoteSymmetric(id string, remote RemoteCipher) *Key {
	return &Key{id: id, remoteCipher: remote}
}

// NewWrapping returns a key that only wraps and unwraps data keys.
func NewWrapping(id string, wrapper Wrapper) *Key { return &Key{id: id, wrapper: wrapper} }

// WithVersion returns the key with the name of its version.
func (k *Key) WithVersion(version string) *Key {
	named := *k
	named.version = version
	return &named
}

// WithWrapper returns the key with a wrapper of data keys.
func (k *Key) WithWrapper(wrapper Wrapper) *Key {
	wrapping := *k
	wrapping.wrapper = wrapper
	return &wrapping
}

// WithDecrypter returns the key with a decrypter for its private key.
func (k *Key) WithDecrypter(decrypter RemoteDecrypter) *Key {
	decrypting := *k
	decrypting.decrypter = decrypter
	return &decrypting
}

// WithExchanger returns the key with an exchanger for its private key.
func (k *Key) WithExchanger(exchanger RemoteExchanger) *Key {
	exchanging := *k
	exchanging.exchanger = exchanger
	return &exchanging
}

// ID returns the id of the key.
func (k *Key) ID() string { return k.id }

// Version returns the name of the version of the key. It is empty if the provider has no
// versions.
func (k *Key) Version() string { return k.version }

// Remote reports whether operations of the key wait for its key manager.
func (k *Key) Remote() bool {
	return k.remoteSigner != nil || k.remoteCipher != nil || k.decrypter != nil || k.exchanger != nil || k.wrapper != nil && !isLocal(k.wrapper)
}

// Signs reports whether there is a private key.
func (k *Key) Signs() bool { return k.signer != nil || k.remoteSigner != nil }

// Signer returns the signer of the private key, or nil if there is no private key. Its
// requests to a key manager end with ctx. It is a [crypto.MessageSigner] if the key manager
// takes messages.
func (k *Key) Signer(ctx context.Context) crypto.Signer {
	if k.remoteSigner != nil {
		return bound(ctx, k.public, k.remoteSigner)
	}
	return k.signer
}

// Public returns the public key, or nil if there is none.
func (k *Key) Public() crypto.PublicKey { return k.public }

// Certificates returns the certificate of the key, and then the certificates of its issuers that
// the provider has. The caller must not change the slice.
func (k *Key) Certificates() []*x509.Certificate { return k.chain }

// OfAuthority reports whether the key belongs to a certificate authority. It does if any
// certificate that the provider has for the public key says so.
func (k *Key) OfAuthority() bool { return k.authority }

// Cipher returns the cipher of the key, or nil if the key does not encrypt. Its requests to a
// key manager end with ctx.
func (k *Key) Cipher(ctx context.Context) engine.Cipher {
	if k.remoteCipher != nil {
		return boundCipher{ctx, k.remoteCipher}
	}
	return k.cipher
}

// Wrapper returns the wrapper of the key, or nil if the key does not wrap data keys.
func (k *Key) Wrapper() Wrapper { return k.wrapper }

// Decrypter returns the decrypter that uses the private key in its key manager, or nil if there
// is none.
func (k *Key) Decrypter() RemoteDecrypter { return k.decrypter }

// Exchanger returns the exchanger that uses the private key in its key manager, or nil if there
// is none.
func (k *Key) Exchanger() RemoteExchanger { return k.exchanger }

// SPKISHA256 returns the SHA-256 of the SubjectPublicKeyInfo in DER of the public key (RFC
// 5280, section 4.1.2.7). It reports false if there is no public key.
func (k *Key) SPKISHA256() ([sha256.Size]byte, bool) { return k.spki, k.public != nil }

// SPKI returns the SubjectPublicKeyInfo in DER of the public key. There has to be one.
func (k *Key) SPKI() ([]byte, error) { return mldsax509.MarshalPKIXPublicKey(k.public) }

func spkiSHA256(public crypto.PublicKey) ([sha256.Size]byte, error) {
	der, err := mldsax509.MarshalPKIXPublicKey(public)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(der), nil
}
