// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Strength is a security strength in bits: an attack takes about two to the
// power of it (NIST SP 800-57 Part 1 Rev. 5, section 5.6.1). It is a lower
// bound: keys between two sizes of the tables have that of the smaller.
type Strength struct {
	// Operation is its name, such as "SignData".
	Operation string
	// Bits is 256, 192, 128, 112 or less than that.
	Bits int
	// Limit names what has no more: the weakest of all that the profile allows.
	Limit string
}

// StrengthOf returns the strength of each operation that a valid profile
// offers, and last that of the whole profile, with Operation empty: that of its
// weakest operation.
//
// A digest counts by its resistance to collisions (table 3), which is what
// signatures need and the worst that a user of HashData may need. A tag that is
// cut counts by its length: so many bits are to be guessed for a forgery (NIST SP
// 800-38D, appendix B). A whole one counts as its key does in table 2.
func StrengthOf(p *Profile) []Strength {
	var all []Strength
	add := func(operation string, parts ...Strength) {
		weakest := slices.MinFunc(parts, func(a, b Strength) int { return a.Bits - b.Bits })
		weakest.Operation = operation
		all = append(all, weakest)
	}
	if h := p.API.HashData; h != nil {
		add("HashData", hashStrength(h.HashAlg))
	}
	if s := p.API.SignCertificate; s != nil {
		parts := []Strength{signatureStrength(s.SignAlg, s.HashAlg, KeyLimits(s.KeyConstraints.Issuer))}
		for _, algorithm := range slices.Sorted(maps.Keys(s.KeyConstraints.Subject)) {
			parts = append(parts, keyStrength(algorithm, s.KeyConstraints.Subject[algorithm].MinKeySize))
		}
		add("SignCertificate", parts...)
	}
	if e := p.API.EncryptData; e != nil {
		parts := []Strength{{Bits: e.KeySize, Limit: fmt.Sprintf("AES-%d", e.KeySize)}}
		if tag := e.TagBits(); tag < wholeTagLength {
			parts = append(parts, Strength{Bits: tag, Limit: fmt.Sprintf("tags of %d bits", tag)})
		}
		add("EncryptData", parts...)
		add("DecryptData", parts...)
	}
	if s := p.API.SignData; s != nil {
		policy := compileSignature(s, compileOptions{})
		add("SignData", signatureStrength(s.SignAlg, s.HashAlg, policy.Signs()))
		add("VerifyData", signatureStrength(s.SignAlg, s.HashAlg, policy.Checks()))
	}
	if len(all) > 0 {
		add("", all...)
	}
	return all
}

// signatureStrength is that of an algorithm with its digest and the weakest key
// allowed. A hybrid is forged only where both of its signatures are, so it is as
// strong as the stronger one.
func signatureStrength(sign, hash string, limits KeyLimits) Strength {
	var strongest Strength
	for part := range strings.SplitSeq(strings.ToLower(sign), "+") {
		var s Strength
		switch part {
		// FIPS 204, table 1: categories 2, 3 and 5 are at least as hard to break
		// as collisions of SHA-256, AES-192 and AES-256.
		case "ml-dsa-44":
			s = Strength{Bits: 128, Limit: "ML-DSA-44"}
		case "ml-dsa-65":
			s = Strength{Bits: 192, Limit: "ML-DSA-65"}
		case "ml-dsa-87":
			s = Strength{Bits: 256, Limit: "ML-DSA-87"}
		default:
			algorithm := signingKeyAlgorithms[part]
			size, _ := limits.Range(algorithm) // none is 0 bits: no key signs at all
			s = keyStrength(algorithm, size.MinKeySize)
			if digest := hashStrength(hash); hashesSeparately(part) && digest.Bits < s.Bits {
				s = digest
			}
		}
		if s.Bits > strongest.Bits || strongest.Limit == "" {
			strongest = s
		}
	}
	return strongest
}

// signingKeyAlgorithms are the keys that signature algorithms take.
var signingKeyAlgorithms = map[string]string{"rsa": "RSA", "rsa-pss": "RSA", "ecdsa": "ECDSA", "ed25519": "Ed25519"}

// keyStrength is that of table 2.
func keyStrength(algorithm string, bits int) Strength {
	sizes := map[string][]struct{ bits, strength int }{
		"RSA":   {{15360, 256}, {7680, 192}, {3072, 128}, {2048, 112}, {1024, 80}},
		"ECDSA": {{512, 256}, {384, 192}, {256, 128}, {224, 112}, {160, 80}},
		// NIST SP 800-186, section 3.2.3.
		"Ed25519": {{ed25519KeySize, 128}},
	}
	for _, size := range sizes[algorithm] {
		if bits >= size.bits {
			limit := fmt.Sprintf("%s keys of %d bits", algorithm, bits)
			if algorithm == "Ed25519" {
				limit = algorithm
			}
			return Strength{Bits: size.strength, Limit: limit}
		}
	}
	return Strength{Limit: algorithm + " keys, none of which is allowed"}
}

// hashStrength is the resistance to collisions of table 3. That of SHAKE is half
// of the output at most (FIPS 202, appendix A.1).
func hashStrength(name string) Strength {
	bits := map[string]int{
		"sha-256": 128, "sha-512/256": 128, "sha3-256": 128, "sha-384": 192, "sha3-384": 192, "sha-512": 256, "sha3-512": 256,
		"shake-128": 64, "shake-256": 128,
	}
	name = strings.ToLower(name)
	return Strength{Bits: bits[name], Limit: strings.ToUpper(name)}
}
