// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"crypto"
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// SignatureFormat is the encoding of a signature.
type SignatureFormat uint8

// The formats. Profiles and the wire contract have the same names.
const (
	SignatureRAW SignatureFormat = iota
	SignatureDER
	SignaturePEM
	SignatureCMS
)

var signatureFormatNames = [...]string{
	SignatureRAW: "RAW", SignatureDER: "DER", SignaturePEM: "PEM", SignatureCMS: "CMS",
}

// String returns the name that profiles use, in upper case.
func (f SignatureFormat) String() string { return signatureFormatNames[f] }

// FindSignatureFormat returns the format with this name. Upper and lower case do not matter.
func FindSignatureFormat(name string) (SignatureFormat, bool) {
	for i, known := range signatureFormatNames {
		if strings.EqualFold(known, name) {
			return SignatureFormat(i), true
		}
	}
	return 0, false
}

// SignatureComponent is one signature with its algorithm.
type SignatureComponent struct {
	Algorithm algorithm.Signature
	// Hash is the digest of the input that is signed, 0 if the algorithm signs the input
	// itself.
	Hash crypto.Hash
}

// SignaturePolicy is the compiled policy of SignData and VerifyData.
type SignaturePolicy struct {
	components    []SignatureComponent
	name          string
	format        SignatureFormat
	fixed         bool
	signs, checks keyrules.Limits
	keys          *keyrules.Policy
	requireFIPS   bool
}

// Components returns the signatures to make. A hybrid has two, the classical one first.
func (s *SignaturePolicy) Components() []SignatureComponent { return s.components }

// Algorithm returns the name in replies, such as "ecdsa-with-sha-256". The name of a hybrid
// is like "ecdsa-with-sha-256+ml-dsa-65".
func (s *SignaturePolicy) Algorithm() string { return s.name }

// Format returns the only format that requests may ask for. It reports false if they may ask
// for any format.
func (s *SignaturePolicy) Format() (SignatureFormat, bool) { return s.format, s.fixed }

// Signs returns the limits of the keys that sign. If a profile limits only one of signing
// and verifying, the limits count for both.
func (s *SignaturePolicy) Signs() keyrules.Limits { return s.signs }

// Checks returns the limits of the keys that verify, see [SignaturePolicy.Signs].
func (s *SignaturePolicy) Checks() keyrules.Limits { return s.checks }

// Keys returns which keys of the broker may be used. It is nil if requests bring their keys.
func (s *SignaturePolicy) Keys() *keyrules.Policy { return s.keys }

// RequiresFIPS reports whether FIPS 140-3 has to approve keys as well, see [RequireFIPS].
func (s *SignaturePolicy) RequiresFIPS() bool { return s.requireFIPS }

// HasCMS reports whether a CMS SignedData can have the signature. There has to be one
// component, and RFC 5754 has to define an identifier for its algorithm and digest.
func HasCMS(components []SignatureComponent) bool {
	return len(components) == 1 && len(components[0].Algorithm.CMS(components[0].Hash)) > 0
}

// limits returns the limits of the keys of SignData or VerifyData.
func (s *SignaturePolicy) limits(op Operation) keyrules.Limits {
	if op == OpVerifyData {
		return s.checks
	}
	return s.signs
}

func (s *SignaturePolicy) effect(u Use) (Effect, string) {
	limits := s.limits(u.Operation)
	for i, key := range u.Keys {
		switch {
		case i >= len(s.components) && key == (UsedKey{}):
			continue
		case i >= len(s.components) || key == (UsedKey{}):
			return Refused, fmt.Sprintf("another number of keys, expected %d for %s", len(s.components), s.Algorithm())
		}
		if why := cmp.Or(s.Keys().Refusal(key.ID), wrongKey(key, s.components[i].Algorithm.Key().Name), limits.Refusal(key.Algorithm, key.Bits)); why != "" {
			return Refused, why
		}
	}
	want, fixed := s.Format()
	switch {
	case u.Format == want || u.GivenFormat && !fixed:
	case !u.GivenFormat && u.Operation == OpSignData:
		return Changed, fmt.Sprintf("signatures in %s instead of %s", want, u.Format)
	default:
		return Refused, fmt.Sprintf("signatures in %s, expected %s", u.Format, want)
	}
	if u.Format == SignatureCMS && !HasCMS(s.components) {
		return Refused, "signatures in CMS, which " + s.Algorithm() + " does not have"
	}
	return changed(u.Algorithm, s.Algorithm())
}

func (s *SignaturePolicy) extremes(op Operation) (all []Use) {
	limits := s.limits(op)
	type asked struct {
		format SignatureFormat
		given  bool
	}
	formats := []asked{{SignatureRAW, true}, {SignatureDER, true}, {SignaturePEM, true}, {SignatureCMS, true}}
	if s.fixed {
		formats = []asked{{s.format, true}, {s.format, false}}
	}
	for _, format := range formats {
		for _, id := range s.keys.Sources() {
			for _, smallest := range []bool{true, false} {
				u := Use{Operation: op, Algorithm: s.name, Format: format.format, GivenFormat: format.given}
				for i, component := range s.components {
					u.Keys[i] = extreme(limits, component.Algorithm.Key().Name, smallest)
					u.Keys[i].ID = id
				}
				all = append(all, u)
			}
		}
	}
	return all
}

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
	v.Enum(where, at, hash, allowed)
}

// signatureStrength returns the strength of an algorithm with its digest and the weakest key
// that is allowed. A hybrid is as strong as the stronger of its two signatures, because an
// attacker has to forge both.
func signatureStrength(signAlg, hash string, limits keyrules.Limits) Strength {
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
func signatureObjection(signAlg, hash string, limits keyrules.Limits) string {
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

// shortKeys returns the objection to limits that allow keys below the approved size.
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
