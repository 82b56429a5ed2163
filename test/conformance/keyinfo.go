// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
)

// Some vectors have keys as bare octets. These functions encode them for the wire:
// SubjectPublicKeyInfo (RFC 5280) and PKCS #8 (RFC 5958).

var (
	rsaOID     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
	ecdsaOID   = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	ed25519OID = asn1.ObjectIdentifier{1, 3, 101, 112}
	mldsaOIDs  = map[string]asn1.ObjectIdentifier{
		"ml-dsa-44": {2, 16, 840, 1, 101, 3, 4, 3, 17},
		"ml-dsa-65": {2, 16, 840, 1, 101, 3, 4, 3, 18},
		"ml-dsa-87": {2, 16, 840, 1, 101, 3, 4, 3, 19},
	}
)

func publicKeyInfo(algorithm asn1.ObjectIdentifier, key []byte) ([]byte, error) {
	der, err := asn1.Marshal(struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}{pkix.AlgorithmIdentifier{Algorithm: algorithm}, asn1.BitString{Bytes: key, BitLength: 8 * len(key)}})
	if err != nil {
		return nil, fmt.Errorf("encode a public key: %w", err)
	}
	return der, nil
}

// publicKeyInfoWith returns a SubjectPublicKeyInfo with parameters of the algorithm.
func publicKeyInfoWith(algorithm asn1.ObjectIdentifier, parameters any, key []byte) ([]byte, error) {
	type identifier struct {
		Algorithm  asn1.ObjectIdentifier
		Parameters any
	}
	der, err := asn1.Marshal(struct {
		Algorithm identifier
		Key       asn1.BitString
	}{identifier{algorithm, parameters}, asn1.BitString{Bytes: key, BitLength: 8 * len(key)}})
	if err != nil {
		return nil, fmt.Errorf("encode a public key: %w", err)
	}
	return der, nil
}

// privateKeyInfo takes the key as the algorithm's own standard encodes it.
func privateKeyInfo(algorithm asn1.ObjectIdentifier, key asn1.RawValue) ([]byte, error) {
	inner, err := asn1.Marshal(key)
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	der, err := asn1.Marshal(struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
	}{0, pkix.AlgorithmIdentifier{Algorithm: algorithm}, inner})
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	return der, nil
}

// octetString returns a CurvePrivateKey (RFC 8410), or an expanded key of ML-DSA
// (RFC 9881).
func octetString(data []byte) asn1.RawValue {
	return asn1.RawValue{Tag: asn1.TagOctetString, Bytes: data}
}

// implicit0 returns the seed of an ML-DSA key (RFC 9881).
func implicit0(data []byte) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, Bytes: data}
}
