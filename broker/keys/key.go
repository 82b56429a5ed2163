// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"fmt"

	mldsax509 "filippo.io/mldsa/x509"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// Key is a key with its operations. It never changes and is safe for concurrent use.
type Key struct {
	id     string
	signer crypto.Signer
	public crypto.PublicKey
	spki   [sha256.Size]byte
	chain  []*x509.Certificate
	cipher engine.Cipher
	// authority is whether the key belongs to a certificate authority, see OfAuthority.
	authority bool
}

// NewSigning returns a key that signs and verifies. chain may be empty. Its first certificate
// is the certificate of the key.
func NewSigning(id string, signer crypto.Signer, chain []*x509.Certificate) (*Key, error) {
	k, err := NewVerifying(id, signer.Public(), chain)
	if err != nil {
		return nil, err
	}
	k.signer = signer
	return k, nil
}

// NewVerifying returns a key that only verifies.
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
	return &Key{id: id, public: public, spki: spki, chain: chain, authority: len(chain) > 0 && ofAuthority(chain[0])}, nil
}

// ofAuthority reports whether a certificate allows its key to sign certificates (RFC 5280,
// sections 4.2.1.3 and 4.2.1.9).
func ofAuthority(certificate *x509.Certificate) bool {
	return certificate.BasicConstraintsValid && certificate.IsCA || certificate.KeyUsage&x509.KeyUsageCertSign != 0
}

// NewSymmetric returns a key that encrypts and decrypts.
func NewSymmetric(id string, cipher engine.Cipher) *Key { return &Key{id: id, cipher: cipher} }

// ID returns the id of the key.
func (k *Key) ID() string { return k.id }

// Signer returns the signer of the private key, or nil if there is no private key.
func (k *Key) Signer() crypto.Signer { return k.signer }

// Public returns the public key, or nil for a symmetric key.
func (k *Key) Public() crypto.PublicKey { return k.public }

// Certificates returns the certificate of the key, and then the certificates of its issuers as
// far as the provider has them. The caller must not change the slice.
func (k *Key) Certificates() []*x509.Certificate { return k.chain }

// OfAuthority reports whether the key belongs to a certificate authority. It does if any
// certificate that the provider has for the public key says so.
func (k *Key) OfAuthority() bool { return k.authority }

// Cipher returns the cipher of the key, or nil for an asymmetric key.
func (k *Key) Cipher() engine.Cipher { return k.cipher }

// SPKISHA256 returns the SHA-256 of the SubjectPublicKeyInfo in DER of the public key (RFC
// 5280, section 4.1.2.7). It reports false for a symmetric key.
func (k *Key) SPKISHA256() ([sha256.Size]byte, bool) { return k.spki, k.public != nil }

func spkiSHA256(public crypto.PublicKey) ([sha256.Size]byte, error) {
	der, err := mldsax509.MarshalPKIXPublicKey(public)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(der), nil
}
