// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

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
