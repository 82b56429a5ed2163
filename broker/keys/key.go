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

// Key is what can be done with one key. It never changes and is safe for
// concurrent use.
type Key struct {
	id     string
	signer crypto.Signer
	public crypto.PublicKey
	spki   [sha256.Size]byte
	chain  []*x509.Certificate
	cipher engine.Cipher
	// authority is whether a certificate makes it the key of a certificate
	// authority.
	authority bool
}

// NewSigning makes a key that signs and verifies. chain may be empty; its first
// certificate is that of the key.
func NewSigning(id string, signer crypto.Signer, chain []*x509.Certificate) (*Key, error) {
	k, err := NewVerifying(id, signer.Public(), chain)
	if err != nil {
		return nil, err
	}
	k.signer = signer
	return k, nil
}

// NewVerifying makes a key that verifies only.
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

// ofAuthority reports whether a certificate lets its key sign others (RFC 5280,
// sections 4.2.1.3 and 4.2.1.9).
func ofAuthority(certificate *x509.Certificate) bool {
	return certificate.BasicConstraintsValid && certificate.IsCA || certificate.KeyUsage&x509.KeyUsageCertSign != 0
}

// NewSymmetric makes a key that encrypts and decrypts.
func NewSymmetric(id string, cipher engine.Cipher) *Key { return &Key{id: id, cipher: cipher} }

// ID is the id under which the provider knows the key.
func (k *Key) ID() string { return k.id }

// Signer signs with the private key, nil where there is none.
func (k *Key) Signer() crypto.Signer { return k.signer }

// Public is the public key, nil for a symmetric key.
func (k *Key) Public() crypto.PublicKey { return k.public }

// Certificates are the certificate of the key and, after it, those of its
// issuers as far as the provider has them. The slice must not be changed.
func (k *Key) Certificates() []*x509.Certificate { return k.chain }

// OfAuthority reports whether the key is that of a certificate authority: any
// certificate that the provider has for the public key says so.
func (k *Key) OfAuthority() bool { return k.authority }

// Cipher encrypts and decrypts with the key, nil for an asymmetric key.
func (k *Key) Cipher() engine.Cipher { return k.cipher }

// SPKISHA256 is the SHA-256 of the DER SubjectPublicKeyInfo of the public key
// (RFC 5280, section 4.1.2.7); false for a symmetric key.
func (k *Key) SPKISHA256() ([sha256.Size]byte, bool) { return k.spki, k.public != nil }

func spkiSHA256(public crypto.PublicKey) ([sha256.Size]byte, error) {
	der, err := mldsax509.MarshalPKIXPublicKey(public)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(der), nil
}
