// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"iter"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Assessment describes an operation of a profile, as far as no call is needed to know it.
type Assessment struct {
	// Operation is the name of the operation, such as "SignData".
	Operation string
	// Algorithm is the name that replies have, such as "ecdsa-with-sha-256".
	Algorithm string
	// Strength is the strength of the weakest use that the profile allows.
	Strength Strength
	// FIPS says whether FIPS 140-3 approves the operation.
	FIPS FIPSVerdict
	// Refused reports whether the broker refuses every call of the operation, because the set
	// was compiled with [RequireFIPS] and the operation is not approved.
	Refused bool
}

// Assessments returns an assessment of each operation that the profile offers, in the order
// of [StrengthOf]. The caller must not change them.
func (c *Compiled) Assessments() []Assessment { return c.assessments }

// Assessment returns the assessment of an operation, or nil if the profile does not offer it.
// The caller must not change it.
func (c *Compiled) Assessment(op Operation) *Assessment {
	for i := range c.assessments {
		if c.assessments[i].Operation == op.String() {
			return &c.assessments[i]
		}
	}
	return nil
}

// Strength returns the strength of the whole profile, see [StrengthOf].
func (c *Compiled) Strength() Strength { return c.strength }

// assess sets the assessments and the strength of c, which is compiled from the valid
// profile p.
func (c *Compiled) assess(p *Profile, o compileOptions) {
	var strengths []Strength
	for operation, judgement := range judged(p) {
		strength := judgement.strength(operation)
		strengths = append(strengths, strength)
		verdict := FIPSVerdict{operation, judgement.objection}
		c.assessments = append(c.assessments, Assessment{
			Operation: operation,
			Algorithm: judgement.algorithm,
			Strength:  strength,
			FIPS:      verdict,
			Refused:   o.requireFIPS && !verdict.Approved(),
		})
	}
	for _, whole := range weakest(strengths) {
		c.strength = whole
	}
}

// Strength is a security strength in bits: an attack takes about two to the power of Bits
// steps (NIST SP 800-57 Part 1 Rev. 5, section 5.6.1). It is a lower bound: a key whose size
// is between two sizes of the tables has the strength of the smaller size.
type Strength struct {
	// Operation is the name of the operation, such as "SignData". It is empty for a whole
	// profile.
	Operation string
	// Bits is 256, 192, 128, 112 or less than 112.
	Bits int
	// Limit names the weakest part that the profile allows. Its strength is Bits.
	Limit string
}

// StrengthOf returns the strength of each operation that a valid profile offers. The last
// element has no Operation and is the strength of the whole profile: the strength of its
// weakest operation.
//
// The strength of a digest is its resistance to collisions (table 3), which signatures need,
// and which users of HashData may need. The strength of a short tag is its length, because
// an attacker has to guess that many bits for a forgery (NIST SP 800-38D, appendix B). A
// tag of full length does not reduce the strength of the key (table 2).
func StrengthOf(p *Profile) []Strength {
	var all []Strength
	for operation, judgement := range judged(p) {
		all = append(all, judgement.strength(operation))
	}
	return append(all, weakest(all)...)
}

// weakest returns the strength of a whole profile from the strengths of its operations. It
// is empty if there are no operations.
func weakest(all []Strength) []Strength {
	if len(all) == 0 {
		return nil
	}
	whole := slices.MinFunc(all, func(a, b Strength) int { return a.Bits - b.Bits })
	whole.Operation = ""
	return []Strength{whole}
}

// DigestStrength returns the resistance to collisions of a digest. Upper and lower case of
// the name do not matter. An unknown name has 0 bits.
func DigestStrength(name string) Strength {
	if digest, known := algorithm.FindDigest(name); known {
		return digestStrength(digest)
	}
	return Strength{Limit: strings.ToUpper(name)}
}

func digestStrength(digest algorithm.Digest) Strength {
	return Strength{Bits: digest.Strength(), Limit: strings.ToUpper(digest.String())}
}

// KeyStrength returns the strength of keys of at least this many bits. name is the name of
// the algorithm in KeyConstraints. An unknown algorithm has 0 bits.
func KeyStrength(name string, bits int) Strength {
	if key, known := algorithm.FindKey(name); known {
		return sizeStrength(key, bits)
	}
	return Strength{Limit: name + " keys, none of which is allowed"}
}

func sizeStrength(key algorithm.Key, size int) Strength {
	bits, limit := key.Strength(size)
	return Strength{Bits: bits, Limit: limit}
}

// FIPSVerdict says whether an operation of a profile is an approved service of the Go
// Cryptographic Module v1.0.0 in its FIPS 140-3 mode.
type FIPSVerdict struct {
	// Operation is the name of the operation, such as "SignData".
	Operation string
	// Reason is a sentence that says why the operation is not approved. It is empty if it is
	// approved.
	Reason string
}

// Approved reports whether the operation is approved.
func (v FIPSVerdict) Approved() bool { return v.Reason == "" }

// FIPSVerdicts returns a verdict on each operation that a valid profile offers. An operation
// is approved only if everything that the profile allows for it is approved.
func FIPSVerdicts(p *Profile) []FIPSVerdict {
	var all []FIPSVerdict
	for operation, judgement := range judged(p) {
		all = append(all, FIPSVerdict{operation, judgement.objection})
	}
	return all
}

// approved refuses profiles that offer no operation that FIPS 140-3 approves.
func (v validator) approved(doc *Document) {
	for i := range doc.Profiles {
		if v.Invalid[yamlfile.Root] || v.Invalid[i] {
			continue
		}
		var reasons []string
		verdicts := FIPSVerdicts(&doc.Profiles[i])
		for _, verdict := range verdicts {
			if !verdict.Approved() {
				reasons = append(reasons, verdict.Operation+": "+verdict.Reason)
			}
		}
		if len(reasons) == len(verdicts) {
			at := yamlfile.Item(i)
			v.Add(at.Field("API"), at, "has no operation that FIPS 140-3 approves, expected at least one, because this broker serves no others (%s)", strings.Join(reasons, "; "))
		}
	}
}

// judged returns a judgement on each operation that a valid profile offers, by the name of the
// operation.
func judged(p *Profile) iter.Seq2[string, judgement] {
	return func(yield func(string, judgement) bool) {
		for _, row := range sections {
			s := row.of(&p.API)
			if s == nil {
				continue
			}
			for i, judgement := range s.judge() {
				if !yield(row.Operations[i].Name, judgement) {
					return
				}
			}
		}
	}
}
