// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	_ "crypto/sha256" // digests of signatures
	_ "crypto/sha3"   // digests of signatures
	_ "crypto/sha512" // digests of signatures
	"fmt"
	"math/big"
	"strings"
)

// hashes are the digests by their names in profiles.
var hashes = map[string]crypto.Hash{
	"sha-256": crypto.SHA256, "sha-384": crypto.SHA384, "sha-512": crypto.SHA512,
	"sha3-256": crypto.SHA3_256, "sha3-384": crypto.SHA3_384, "sha3-512": crypto.SHA3_512,
}

// verifierOf returns what verifies the signatures of a key with an algorithm.
func verifierOf(public crypto.PublicKey, algorithm string) (func(message, signature []byte) bool, error) {
	name, digest, _ := strings.Cut(algorithm, "-with-")
	hash, known := hashes[digest]
	sum := func(message []byte) []byte {
		h := hash.New()
		h.Write(message)
		return h.Sum(nil)
	}
	switch key := public.(type) {
	case ed25519.PublicKey:
		if algorithm == "ed25519" && len(key) == ed25519.PublicKeySize {
			return func(message, signature []byte) bool { return ed25519.Verify(key, message, signature) }, nil
		}
	case *ecdsa.PublicKey:
		if name == "ecdsa" && known {
			return func(message, signature []byte) bool { return verifyECDSA(key, sum(message), signature) }, nil
		}
	case *rsa.PublicKey:
		if name == "rsa" && known {
			return func(message, signature []byte) bool {
				return rsa.VerifyPKCS1v15(key, hash, sum(message), signature) == nil
			}, nil
		}
		if name == "rsa-pss" && known {
			return func(message, signature []byte) bool {
				return rsa.VerifyPSS(key, hash, sum(message), signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
			}, nil
		}
	}
	return nil, fmt.Errorf("session: found the signature algorithm %.64q and a key of type %T, expected ecdsa-with-, rsa-with- or rsa-pss-with- and a digest, or ed25519, with a key of that algorithm", algorithm, public)
}

// verifyECDSA verifies r and s joined, each as long as the order of the curve (IEEE P1363).
func verifyECDSA(key *ecdsa.PublicKey, digest, signature []byte) bool {
	size := (key.Params().N.BitLen() + 7) / 8
	if len(signature) != 2*size {
		return false
	}
	return ecdsa.Verify(key, digest, new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:]))
}
