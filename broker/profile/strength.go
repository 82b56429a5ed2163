// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
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
	for _, row := range sections {
		if s := row.of(&p.API); s != nil {
			for i, judgement := range s.judge() {
				strength := judgement.strength()
				strength.Operation = row.Operations[i]
				all = append(all, strength)
			}
		}
	}
	return append(all, weakest(all)...)
}

// weakest is the strength of a whole profile, none where it offers nothing.
func weakest(all []Strength) []Strength {
	if len(all) == 0 {
		return nil
	}
	whole := slices.MinFunc(all, func(a, b Strength) int { return a.Bits - b.Bits })
	whole.Operation = ""
	return []Strength{whole}
}

// DigestStrength is the resistance to collisions of a digest, by its name in any
// case; 0 bits for a name that is none.
func DigestStrength(name string) Strength {
	if digest, known := algorithm.FindDigest(name); known {
		return digestStrength(digest)
	}
	return Strength{Limit: strings.ToUpper(name)}
}

func digestStrength(digest algorithm.Digest) Strength {
	return Strength{Bits: digest.Strength(), Limit: strings.ToUpper(digest.String())}
}

// KeyStrength is that of keys of so many bits or more; name is as KeyConstraints
// have it. An algorithm that is not known has 0 bits.
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
