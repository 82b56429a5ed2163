// SPDX-License-Identifier: Apache-2.0

package wrapping

import (
	"context"
	"crypto"
	"crypto/mlkem"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"

	"github.com/crypto-broker/crypto-broker-operator/broker/pemtext"
)

// The object identifiers of ML-KEM (RFC 9935, section 3) and X-Wing (draft-connolly-cfrg-xwing-kem-10, section 5.8).
var (
	oidMLKEM768  = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 4, 2}
	oidMLKEM1024 = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 4, 3}
	oidXWing     = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 62253, 25722}
)

// envelope is a data key of the type MLKEM or Hybrid: a ciphertext of the key encapsulation, and the data key encrypted with
// AES-256-GCM, with the nonce in front.
type envelope struct {
	Encapsulated []byte `asn1:"tag:0"`
	Sealed       []byte `asn1:"tag:1"`
}

// parseKEMKey reads a private key of ML-KEM (RFC 9935, section 6) or X-Wing in PKCS #8. It returns nil without an error for anything
// else. The key must have its seed.
func parseKEMKey(text []byte) (Key, error) {
	block, _ := pem.Decode(pemtext.WithoutMark(text))
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, nil
	}
	defer clear(block.Bytes)
	var info struct {
		Version    int
		Algorithm  pkix.AlgorithmIdentifier
		PrivateKey []byte
	}
	defer func() { clear(info.PrivateKey) }()
	if rest, err := asn1.Unmarshal(block.Bytes, &info); err != nil || len(rest) != 0 {
		return nil, nil
	}
	algorithm := kemAlgorithm(info.Algorithm.Algorithm)
	switch algorithm {
	case "":
		return nil, nil
	case XWing:
		return newXWingKey(info.PrivateKey)
	}
	seed := mlkemSeed(info.PrivateKey)
	defer clear(seed)
	if len(seed) != mlkem.SeedSize {
		return nil, errors.New("is an ML-KEM key without its seed, expected one with the seed of 64 bytes")
	}
	var key crypto.Decapsulator
	var err error
	if algorithm == MLKEM768 {
		key, err = mlkem.NewDecapsulationKey768(seed)
	} else {
		key, err = mlkem.NewDecapsulationKey1024(seed)
	}
	if err != nil {
		return nil, errors.New("is a damaged ML-KEM key")
	}
	public, err := kemPublicPEM(info.Algorithm.Algorithm, key.Encapsulator().Bytes())
	if err != nil {
		return nil, err
	}
	return &kemKey{pair{algorithm, public}, key}, nil
}

// mlkemSeed returns the seed of a private key of ML-KEM, in one of the two forms that have it: the seed
// alone, or the seed and the expanded key (RFC 9935, section 6). Otherwise it returns nil.
func mlkemSeed(der []byte) []byte {
	var seed []byte
	if rest, err := asn1.UnmarshalWithParams(der, &seed, "tag:0"); err == nil && len(rest) == 0 {
		return seed
	}
	var both struct{ Seed, Expanded []byte }
	if rest, err := asn1.Unmarshal(der, &both); err == nil && len(rest) == 0 {
		clear(both.Expanded)
		return both.Seed
	}
	return nil
}

func kemAlgorithm(oid asn1.ObjectIdentifier) Algorithm {
	switch {
	case oid.Equal(oidMLKEM768):
		return MLKEM768
	case oid.Equal(oidMLKEM1024):
		return MLKEM1024
	case oid.Equal(oidXWing):
		return XWing
	default:
		return ""
	}
}

// publicInfo is SubjectPublicKeyInfo (RFC 5280, section 4.1).
type publicInfo struct {
	Algorithm pkix.AlgorithmIdentifier
	PublicKey asn1.BitString
}

func kemPublicPEM(oid asn1.ObjectIdentifier, key []byte) (string, error) {
	der, err := asn1.Marshal(publicInfo{Algorithm: pkix.AlgorithmIdentifier{Algorithm: oid}, PublicKey: asn1.BitString{Bytes: key, BitLength: 8 * len(key)}})
	if err != nil {
		return "", err
	}
	return encodePublic(der), nil
}

// parseKEMPublic reads a public key of ML-KEM or X-Wing, or returns nil.
func parseKEMPublic(der []byte) any {
	var info publicInfo
	if rest, err := asn1.Unmarshal(der, &info); err != nil || len(rest) != 0 || info.PublicKey.BitLength%8 != 0 {
		return nil
	}
	switch kemAlgorithm(info.Algorithm.Algorithm) {
	case MLKEM768:
		if key, err := mlkem.NewEncapsulationKey768(info.PublicKey.Bytes); err == nil {
			return key
		}
	case MLKEM1024:
		if key, err := mlkem.NewEncapsulationKey1024(info.PublicKey.Bytes); err == nil {
			return key
		}
	case XWing:
		if key, err := newXWingPublic(info.PublicKey.Bytes); err == nil {
			return key
		}
	}
	return nil
}

// kemKey unwraps with a key encapsulation and AES-256-GCM.
type kemKey struct {
	pair
	key interface {
		Decapsulate(ciphertext []byte) ([]byte, error)
	}
}

// Unwrap implements Key. A ciphertext for another key gives a random key, so that the
// authentication of AES-GCM refuses it (FIPS 203, section 6.3).
func (k *kemKey) Unwrap(_ context.Context, wrapped Wrapped) ([]byte, error) {
	if wrapped.Type != k.algorithm.Type() {
		return nil, errType
	}
	var both envelope
	if rest, err := asn1.Unmarshal(wrapped.Key, &both); err != nil || len(rest) != 0 {
		return nil, errors.New("the data key is no DER sequence of two ciphertexts")
	}
	key, err := k.key.Decapsulate(both.Encapsulated)
	if err != nil {
		return nil, err
	}
	if k.algorithm == XWing {
		return openShared(key, both.Sealed)
	}
	defer clear(key)
	return open(key, both.Sealed)
}
