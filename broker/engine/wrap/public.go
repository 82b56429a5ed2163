// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hpke"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1" //nolint:gosec // for RSA-OAEP with SHA-1, which a profile has to allow
	_ "crypto/sha256"
	_ "crypto/sha512"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// Public wraps keys with a public key.
type Public struct {
	kind algorithm.WrappingKey
	rsa  *rsa.PublicKey // nil for HPKE
	hpke hpke.PublicKey // nil for RSA
	kdf  hpke.KDF       // of HPKE
}

// NewPublic returns the public key for wrapping: of type [*rsa.PublicKey] with at least 2048
// bits if FIPS 186-5 approves the key, of type [*ecdsa.PublicKey] or [*ecdh.PublicKey] on P-256, P-384 or P-521, of type
// [*mlkem.EncapsulationKey768] or [*mlkem.EncapsulationKey1024], or an [hpke.PublicKey] of
// MLKEM768-X25519 or of the same kinds. The error continues the sentence "the key …".
func NewPublic(public crypto.PublicKey) (*Public, error) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if smallest := algorithm.WrapRSAOAEPSHA256.KeySizes()[0]; key.N.BitLen() < smallest {
			return nil, inputError("is an RSA key of %d bits, expected at least %d", key.N.BitLen(), smallest)
		}
		if problem := engine.UnapprovedKey(key, nil); problem != "" {
			return nil, inputError("is %s", problem)
		}
		return &Public{kind: algorithm.RSAWrappingKey, rsa: key}, nil
	case *ecdsa.PublicKey:
		converted, err := key.ECDH()
		if err != nil {
			return nil, errCurve
		}
		return NewPublic(converted)
	case *ecdh.PublicKey:
		return newHPKE(hpke.NewDHKEMPublicKey(key))
	case *mlkem.EncapsulationKey768, *mlkem.EncapsulationKey1024:
		return newHPKE(hpke.NewMLKEMPublicKey(key.(crypto.Encapsulator)))
	case hpke.PublicKey:
		return newHPKE(key, nil)
	default:
		return nil, inputError("is a public key of a kind that does not wrap (%T), expected RSA, a NIST curve, ML-KEM or MLKEM768-X25519", public)
	}
}

var errCurve = inputError("is on an elliptic curve that does not wrap, expected P-256, P-384 or P-521")

// newHPKE takes both results of a function that makes the key.
func newHPKE(key hpke.PublicKey, err error) (*Public, error) {
	if err != nil {
		return nil, errCurve
	}
	for _, suite := range suites {
		if suite.kem.ID() == key.KEM().ID() {
			return &Public{kind: suite.kind, hpke: key, kdf: suite.kdf}, nil
		}
	}
	if key.KEM().ID() == hpke.DHKEM(ecdh.X25519()).ID() {
		return nil, errCurve
	}
	return nil, inputError("is an HPKE key of a kind that does not wrap, expected P-256, P-384, P-521, ML-KEM-768, ML-KEM-1024 or MLKEM768-X25519")
}

// suite has the KEM and the KDF of HPKE for one kind of keys. The AEAD is always AES-256-GCM.
type suite struct {
	kind algorithm.WrappingKey
	kem  hpke.KEM
	kdf  hpke.KDF
}

var suites = []suite{
	{algorithm.P256WrappingKey, hpke.DHKEM(ecdh.P256()), hpke.HKDFSHA256()},
	{algorithm.P384WrappingKey, hpke.DHKEM(ecdh.P384()), hpke.HKDFSHA384()},
	{algorithm.P521WrappingKey, hpke.DHKEM(ecdh.P521()), hpke.HKDFSHA512()},
	{algorithm.MLKEM768WrappingKey, hpke.MLKEM768(), hpke.HKDFSHA256()},
	{algorithm.MLKEM1024WrappingKey, hpke.MLKEM1024(), hpke.HKDFSHA384()},
	{algorithm.MLKEMX25519WrappingKey, hpke.MLKEM768X25519(), hpke.HKDFSHA256()},
}

// Kind returns the kind of the key.
func (p *Public) Kind() algorithm.WrappingKey { return p.kind }

// Wrap implements Wrapper. The additional data is the label of RSA-OAEP (RFC 8017, section
// 7.1), or the info of HPKE (RFC 9180, section 8.1).
func (p *Public) Wrap(with algorithm.Wrapping, key, additional []byte) ([]byte, error) {
	if err := check(with, p.kind, additional); err != nil {
		return nil, err
	}
	if err := checkSize(key); err != nil {
		return nil, err
	}
	if p.rsa == nil {
		return hpke.Seal(p.hpke, p.kdf, hpke.AES256GCM(), additional, key)
	}
	hash := with.OAEPHash()
	if most := p.rsa.Size() - 2*hash.Size() - 2; len(key) > most {
		return nil, inputError("found a key of %d bytes, expected at most %d for %s with an RSA key of %d bits", len(key), most, with, p.rsa.N.BitLen())
	}
	return rsa.EncryptOAEP(hash.New(), rand.Reader, p.rsa, key, additional)
}

// Private wraps and unwraps keys with a key pair.
type Private struct {
	Public
	rsa  *rsa.PrivateKey // nil for HPKE
	hpke hpke.PrivateKey // nil for RSA
}

var _ Unwrapper = (*Private)(nil)

// NewPrivate returns the key pair for unwrapping: of type [*rsa.PrivateKey], [*ecdsa.PrivateKey],
// [*ecdh.PrivateKey], [*mlkem.DecapsulationKey768] or [*mlkem.DecapsulationKey1024], or an
// [hpke.PrivateKey]. The same sizes and curves are allowed as for [NewPublic]. The error
// continues the sentence "the key …".
func NewPrivate(private crypto.PrivateKey) (*Private, error) {
	switch key := private.(type) {
	case *rsa.PrivateKey:
		public, err := NewPublic(&key.PublicKey)
		if err != nil {
			return nil, err
		}
		if problem := engine.UnapprovedKey(&key.PublicKey, key); problem != "" {
			return nil, inputError("is %s", problem)
		}
		return &Private{Public: *public, rsa: key}, nil
	case *ecdsa.PrivateKey:
		converted, err := key.ECDH()
		if err != nil {
			return nil, errCurve
		}
		return NewPrivate(converted)
	case *ecdh.PrivateKey:
		return newHPKEPrivate(hpke.NewDHKEMPrivateKey(key))
	case *mlkem.DecapsulationKey768, *mlkem.DecapsulationKey1024:
		return newHPKEPrivate(hpke.NewMLKEMPrivateKey(key.(crypto.Decapsulator)))
	case hpke.PrivateKey:
		return newHPKEPrivate(key, nil)
	default:
		return nil, inputError("is a private key of a kind that does not unwrap (%T), expected RSA, a NIST curve, ML-KEM or MLKEM768-X25519", private)
	}
}

func newHPKEPrivate(key hpke.PrivateKey, err error) (*Private, error) {
	if err != nil {
		return nil, errCurve
	}
	public, err := newHPKE(key.PublicKey(), nil)
	if err != nil {
		return nil, err
	}
	return &Private{Public: *public, hpke: key}, nil
}

// Unwrap implements Unwrapper.
func (p *Private) Unwrap(with algorithm.Wrapping, wrapped, additional []byte) ([]byte, error) {
	if err := check(with, p.kind, additional); err != nil {
		return nil, err
	}
	if len(wrapped) > maxWrappedSize {
		return nil, ErrUnwrap
	}
	if p.rsa == nil {
		return unwrapped(hpke.Open(p.hpke, p.kdf, hpke.AES256GCM(), additional, wrapped))
	}
	// RFC 8017, section 7.1.2, step 1b. Go's package also takes a shorter ciphertext.
	if len(wrapped) != p.Public.rsa.Size() {
		return nil, ErrUnwrap
	}
	return unwrapped(rsa.DecryptOAEP(with.OAEPHash().New(), nil, p.rsa, wrapped, additional))
}
