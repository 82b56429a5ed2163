// SPDX-License-Identifier: Apache-2.0

package jws

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	_ "crypto/sha256" // for crypto.SHA256
	_ "crypto/sha512" // for crypto.SHA384 and crypto.SHA512
	"math/big"
)

// Algorithms are the algorithms of signatures (RFC 7518, section 3.1, and RFC 8037).
var Algorithms = []string{"ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA"}

// The hashes of algorithms with RSA, and the hashes and curves of those with ECDSA.
var (
	pkcs1 = map[string]crypto.Hash{"RS256": crypto.SHA256, "RS384": crypto.SHA384, "RS512": crypto.SHA512}
	pss   = map[string]crypto.Hash{"PS256": crypto.SHA256, "PS384": crypto.SHA384, "PS512": crypto.SHA512}
	ec    = map[string]struct {
		hash  crypto.Hash
		curve elliptic.Curve
	}{"ES256": {crypto.SHA256, elliptic.P256()}, "ES384": {crypto.SHA384, elliptic.P384()}, "ES512": {crypto.SHA512, elliptic.P521()}}
)

// Verify returns [ErrSignature] unless the JWS is signed with the key, by the algorithm of its header, and that is one of [Algorithms]. The key is
// an *ecdsa.PublicKey, an *rsa.PublicKey or an ed25519.PublicKey.
func (s *Signed) Verify(key crypto.PublicKey) error {
	if !s.isBy(key) {
		return ErrSignature
	}
	return nil
}

func (s *Signed) isBy(key crypto.PublicKey) bool {
	name := s.Header.Algorithm
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if algorithm, ok := ec[name]; ok && key.Curve == algorithm.curve {
			return s.isByEC(key, s.digest(algorithm.hash))
		}
	case *rsa.PublicKey:
		if hash, ok := pkcs1[name]; ok {
			return rsa.VerifyPKCS1v15(key, hash, s.digest(hash), s.signature) == nil
		}
		if hash, ok := pss[name]; ok {
			return rsa.VerifyPSS(key, hash, s.digest(hash), s.signature, nil) == nil
		}
	case ed25519.PublicKey:
		return name == "EdDSA" && len(key) == ed25519.PublicKeySize && ed25519.Verify(key, []byte(s.input), s.signature)
	}
	return false
}

// isByEC checks a signature of two numbers as long as those of the curve (RFC 7518, section 3.4).
func (s *Signed) isByEC(key *ecdsa.PublicKey, digest []byte) bool {
	size := (key.Params().BitSize + 7) / 8
	if len(s.signature) != 2*size {
		return false
	}
	return ecdsa.Verify(key, digest, new(big.Int).SetBytes(s.signature[:size]), new(big.Int).SetBytes(s.signature[size:]))
}

func (s *Signed) digest(hash crypto.Hash) []byte {
	h := hash.New()
	h.Write([]byte(s.input))
	return h.Sum(nil)
}
