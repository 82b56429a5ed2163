// SPDX-License-Identifier: Apache-2.0

package wrapping

import (
	"crypto"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the format of OpenTDF's clients; OAEP does not need a hash that resists collisions
	"encoding/asn1"
	"errors"
	"fmt"
	"math"
)

// smallestRSA is the size of the smallest RSA key of a client in bits: NIST SP 800-131A.
const smallestRSA = 2048

// A Recipient is the public key of a client, to which results are wrapped.
type Recipient struct {
	wrap    func(dataKey []byte) ([]byte, error)
	session string
}

// NewRecipient reads the public key of a client in PEM: RSA of 2048 to 4096 bits, EC on P-256,
// P-384 or P-521, ML-KEM, or X-Wing. With fips it refuses RSA, which clients use with SHA-1 only, and
// X-Wing. An error is the end of a sentence that begins with the name of the key.
func NewRecipient(text string, fips bool) (*Recipient, error) {
	public, err := parsePublic(text)
	if err != nil {
		return nil, err
	}
	switch key := public.(type) {
	case *rsa.PublicKey:
		if fips {
			return nil, errors.New("is an RSA key, expected an EC or ML-KEM key, because this service does not use RSA-OAEP with SHA-1")
		}
		if size := key.N.BitLen(); size < smallestRSA || size > largestRSA {
			return nil, fmt.Errorf("is an RSA key of %d bits, expected %d to %d", size, smallestRSA, largestRSA)
		}
		if !usable(key) {
			return nil, errors.New("is an RSA key that cannot be used, expected one with an odd modulus, and an odd exponent from 3 to 2147483647")
		}
		return &Recipient{wrap: func(dataKey []byte) ([]byte, error) {
			return rsa.EncryptOAEP(sha1.New(), rand.Reader, key, dataKey, nil)
		}}, nil
	case *xwingPublic:
		if fips {
			return nil, errors.New("is an X-Wing key, expected an EC or ML-KEM key, because this service does not use X25519")
		}
		return &Recipient{wrap: func(dataKey []byte) ([]byte, error) { return wrapXWing(key, dataKey) }}, nil
	case crypto.Encapsulator:
		return &Recipient{wrap: func(dataKey []byte) ([]byte, error) { return wrapMLKEM(key, dataKey) }}, nil
	default:
		exchange, err := exchangeKey(public)
		if err != nil {
			return nil, errors.New("is on another curve or of another algorithm, expected RSA, EC on P-256, P-384 or P-521, ML-KEM, or X-Wing")
		}
		return newECRecipient(exchange)
	}
}

// usable reports whether crypto/rsa encrypts with a key. Nothing else checks the numbers before there is a data key, and a test
// encryption would take as long as the encryption of the data key.
func usable(key *rsa.PublicKey) bool {
	return key.N.Bit(0) == 1 && key.E&1 == 1 && key.E >= 3 && key.E <= math.MaxInt32
}

func newECRecipient(key *ecdh.PublicKey) (*Recipient, error) {
	ephemeral, err := key.Curve().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	session, err := publicPEM(ephemeral.PublicKey())
	if err != nil {
		return nil, err
	}
	return &Recipient{session: session, wrap: func(dataKey []byte) ([]byte, error) {
		secret, err := ephemeral.ECDH(key)
		if err != nil {
			return nil, err
		}
		return sealShared(secret, dataKey)
	}}, nil
}

func wrapMLKEM(key crypto.Encapsulator, dataKey []byte) ([]byte, error) {
	shared, encapsulated := key.Encapsulate()
	defer clear(shared)
	sealed, err := seal(shared, dataKey)
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(envelope{encapsulated, sealed})
}

func wrapXWing(key *xwingPublic, dataKey []byte) ([]byte, error) {
	shared, encapsulated, err := key.encapsulate()
	if err != nil {
		return nil, err
	}
	sealed, err := sealShared(shared, dataKey)
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(envelope{encapsulated, sealed})
}

// Wrap wraps a data key for the client.
func (r *Recipient) Wrap(dataKey []byte) ([]byte, error) { return r.wrap(dataKey) }

// SessionKey returns the ephemeral public key in PEM that an EC client needs, else the empty
// string.
func (r *Recipient) SessionKey() string { return r.session }
