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
)

// The object identifiers of ML-KEM: RFC 9935, section 3.
var (
	oidMLKEM768  = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 4, 2}
	oidMLKEM1024 = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 4, 3}
)

// envelope is a data key of the type MLKEM: a ciphertext of ML-KEM, and the data key encrypted
// with AES-256-GCM under the shared key, with the nonce in front.
type envelope struct {
	Encapsulated []byte `asn1:"tag:0"`
	Sealed       []byte `asn1:"tag:1"`
}

func parseEnvelope(der []byte) (envelope, error) {
	var e envelope
	if rest, err := asn1.Unmarshal(der, &e); err != nil || len(rest) != 0 {
		return envelope{}, errors.New("the data key is no DER sequence of two ciphertexts")
	}
	return e, nil
}

// parseMLKEMKey reads a private key of ML-KEM in PKCS #8 (RFC 9935, section 6). It returns nil
// without an error for anything else. The key must have its seed.
func parseMLKEMKey(text []byte) (Key, error) {
	block, _ := pem.Decode(text)
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
	algorithm := mlkemAlgorithm(info.Algorithm.Algorithm)
	if algorithm == "" {
		return nil, nil
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
	public, err := mlkemPublicPEM(info.Algorithm.Algorithm, key.Encapsulator().Bytes())
	if err != nil {
		return nil, err
	}
	return &mlkemKey{key: key, algorithm: algorithm, public: public}, nil
}

// mlkemSeed returns the seed of a private key, in one of the two forms that have it: the seed
// alone, or the seed and the expanded key (RFC 9935, section 6). Else it returns nil.
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

func mlkemAlgorithm(oid asn1.ObjectIdentifier) Algorithm {
	switch {
	case oid.Equal(oidMLKEM768):
		return MLKEM768
	case oid.Equal(oidMLKEM1024):
		return MLKEM1024
	default:
		return ""
	}
}

// publicInfo is SubjectPublicKeyInfo (RFC 5280, section 4.1).
type publicInfo struct {
	Algorithm pkix.AlgorithmIdentifier
	PublicKey asn1.BitString
}

func mlkemPublicPEM(oid asn1.ObjectIdentifier, key []byte) (string, error) {
	der, err := asn1.Marshal(publicInfo{Algorithm: pkix.AlgorithmIdentifier{Algorithm: oid}, PublicKey: asn1.BitString{Bytes: key, BitLength: 8 * len(key)}})
	if err != nil {
		return "", err
	}
	return encodePublic(der), nil
}

// parseMLKEMPublic reads a public key of ML-KEM, or returns nil.
func parseMLKEMPublic(der []byte) crypto.Encapsulator {
	var info publicInfo
	if rest, err := asn1.Unmarshal(der, &info); err != nil || len(rest) != 0 || info.PublicKey.BitLength%8 != 0 {
		return nil
	}
	switch mlkemAlgorithm(info.Algorithm.Algorithm) {
	case MLKEM768:
		if key, err := mlkem.NewEncapsulationKey768(info.PublicKey.Bytes); err == nil {
			return key
		}
	case MLKEM1024:
		if key, err := mlkem.NewEncapsulationKey1024(info.PublicKey.Bytes); err == nil {
			return key
		}
	}
	return nil
}

// mlkemKey unwraps with ML-KEM and AES-256-GCM.
type mlkemKey struct {
	key       crypto.Decapsulator
	algorithm Algorithm
	public    string
}

// Algorithm implements Key.
func (k *mlkemKey) Algorithm() Algorithm { return k.algorithm }

// Public implements Key.
func (k *mlkemKey) Public() string { return k.public }

// Unwrap implements Key. A ciphertext of ML-KEM for another key gives a random key, so that the
// authentication of AES-GCM refuses it (FIPS 203, section 6.3).
func (k *mlkemKey) Unwrap(_ context.Context, wrapped Wrapped) ([]byte, error) {
	if wrapped.Type != MLKEM {
		return nil, errType
	}
	envelope, err := parseEnvelope(wrapped.Key)
	if err != nil {
		return nil, err
	}
	key, err := k.key.Decapsulate(envelope.Encapsulated)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	return open(key, envelope.Sealed)
}
