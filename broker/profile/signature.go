// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// takesDigest reports whether a SignAlg signs a digest that the profile chooses. It reports
// true for an unknown SignAlg.
func takesDigest(signAlg string) bool {
	for part := range strings.SplitSeq(signAlg, "+") {
		if s, known := algorithm.FindSignature(part); !known || s.TakesDigest() {
			return true
		}
	}
	return false
}

// withDigest returns the name of a signature algorithm with its digest.
func withDigest(sign algorithm.Signature, digest algorithm.Digest) string {
	return sign.String() + "-with-" + digest.String()
}

// signHash checks the HashAlg of a signature. Ed25519 and ML-DSA do not take one.
func (v validator) signHash(at yamlfile.Place, sign, hash string, allowed []string) {
	where := at.Field("HashAlg")
	if !takesDigest(sign) {
		if hash != "" {
			v.Add(where, at, "found %s, expected no HashAlg, since %s fixes its own digest", yamlfile.Excerpt(hash), strings.ToLower(sign))
		}
		return
	}
	v.enum(where, at, hash, allowed)
}

// signatureStrength returns the strength of an algorithm with its digest and the weakest key
// that is allowed. A hybrid is as strong as the stronger of its two signatures, because an
// attacker has to forge both.
func signatureStrength(signAlg, hash string, limits KeyLimits) Strength {
	var strongest Strength
	for _, s := range algorithm.FindSignatures(signAlg) {
		size, _ := limits.Range(s.Key().Name) // 0 bits if no key of the algorithm is allowed
		strength := sizeStrength(s.Key(), size.MinKeySize)
		if s.TakesDigest() {
			if digest := DigestStrength(hash); digest.Bits < strength.Bits {
				strength = digest
			}
		}
		if strength.Bits > strongest.Bits || strongest.Limit == "" {
			strongest = strength
		}
	}
	return strongest
}

// signatureObjection returns why FIPS 140-3 does not approve a signature algorithm with its
// digest and the keys that are allowed. It is empty if FIPS 140-3 approves them.
func signatureObjection(signAlg, hash string, limits KeyLimits) string {
	for _, s := range algorithm.FindSignatures(signAlg) {
		key := s.Key()
		if why := cmp.Or(s.Approval().Objection(), key.Approval.Objection()); why != "" {
			return "SignAlg has " + s.String() + ", " + why
		}
		if size, _ := limits.Range(key.Name); size.MinKeySize < key.MinApprovedSize {
			return shortKeys(key)
		}
		if s.TakesDigest() {
			digest, _ := algorithm.FindDigest(hash)
			if why := digestObjection("HashAlg", digest); why != "" {
				return why
			}
		}
	}
	return ""
}

// shortKeys returns the objection that keys are allowed which are too short to be approved.
func shortKeys(key algorithm.Key) string {
	return fmt.Sprintf("KeyConstraints allow %s keys below %d bits, which FIPS 186-5 does not approve", key.Name, key.MinApprovedSize)
}

// digestObjection returns why FIPS 140-3 does not approve the digest in a field. It is empty
// if FIPS 140-3 approves the digest.
func digestObjection(field string, digest algorithm.Digest) string {
	if why := digest.Approval().Objection(); why != "" {
		return fmt.Sprintf("%s is %s, %s; choose another one", field, strings.ToUpper(digest.String()), why)
	}
	return ""
}
