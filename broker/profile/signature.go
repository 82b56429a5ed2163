// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// takesDigest reports whether a SignAlg signs a digest that the profile chooses.
// One that is not known does.
func takesDigest(signAlg string) bool {
	for part := range strings.SplitSeq(signAlg, "+") {
		if s, known := algorithm.FindSignature(part); !known || s.TakesDigest() {
			return true
		}
	}
	return false
}

// signHash checks the digest of a signature. Ed25519 and ML-DSA fix their own.
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

// signatureStrength is that of an algorithm with its digest and the weakest key
// allowed. A hybrid is forged only where both of its signatures are, so it is as
// strong as the stronger one.
func signatureStrength(signAlg, hash string, limits KeyLimits) Strength {
	var strongest Strength
	for _, s := range algorithm.FindSignatures(signAlg) {
		size, _ := limits.Range(s.Key().Name) // none is 0 bits: no key signs at all
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

// signatureObjection says why FIPS 140-3 does not approve a signature algorithm
// with its digest and the keys allowed; empty where it does.
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

// shortKeys says that keys are allowed that are too short to be approved.
func shortKeys(key algorithm.Key) string {
	return fmt.Sprintf("KeyConstraints allow %s keys below %d bits, which FIPS 186-5 does not approve", key.Name, key.MinApprovedSize)
}

// digestObjection says why FIPS 140-3 does not approve the digest in a field; empty
// where it does.
func digestObjection(field string, digest algorithm.Digest) string {
	if why := digest.Approval().Objection(); why != "" {
		return fmt.Sprintf("%s is %s, %s; choose another one", field, strings.ToUpper(digest.String()), why)
	}
	return ""
}
