// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Primitive is a building block of algorithms, at one size: a digest, a block cipher, or a kind
// of keys. "rsa-with-sha-256" with a key of 2048 bits has the primitives "rsa-2048" and
// "sha-256". Standards for the time after quantum computers speak about primitives.
type Primitive struct {
	// Name is in lower case, such as "sha-1", "rsa-2048", "p-256" or "ml-dsa-44". It is the
	// Family if the size is not known.
	Name string
	// Family is the name without a size: "rsa" of "rsa-2048", and "sha-1" of "sha-1".
	Family string
	// Bits is the size of the key, or of a digest's output. It is 0 if the size is not known, or
	// if the name has no size.
	Bits int
	// Strength is in bits, against computers of today. If the size of the key is not known, it
	// is the strength of the smallest key that brokers accept.
	Strength int
	Kind     Kind
	CNSA     CNSA
	// DeprecatedAfter and DisallowedAfter are the last years before NIST deprecates and
	// disallows the primitive.
	DeprecatedAfter, DisallowedAfter Year
}

// Kind says whether an algorithm resists quantum computers. The zero value is not a kind. Of two
// kinds, the smaller one is the weaker one.
type Kind uint8

const (
	// Classical is the kind of algorithms that a quantum computer can break.
	Classical Kind = iota + 1
	// PostQuantum is the kind of algorithms that are made to resist quantum computers.
	PostQuantum
	// Symmetric is the kind of digests and block ciphers. No quantum computer is known to break
	// them (NIST IR 8547, initial public draft of November 2024, section 2.1).
	Symmetric
)

// CNSA says which Commercial National Security Algorithm Suites of the NSA have a primitive. The
// zero value is not an answer.
type CNSA uint8

const (
	// OutsideCNSA means that neither suite has the primitive.
	OutsideCNSA CNSA = 1 << iota
	// InCNSA1 means that CNSA 1.0 has the primitive (CNSSP 15 of 2016): AES-256, SHA-384, P-384, and
	// RSA from 3072 bits.
	InCNSA1
	// InCNSA2 means that CNSA 2.0 has the primitive: AES-256, SHA-384, SHA-512, ML-KEM-1024 and
	// ML-DSA-87 ("Announcing the Commercial National Security Algorithm Suite 2.0" of 2022, and its
	// FAQ of December 2024). It also has LMS and XMSS, which brokers do not have.
	InCNSA2
)

// LastYearCNSA1 is the year by which CNSA 2.0 is used exclusively by services in clouds, and by which
// applications are replaced that cannot use it ("The Commercial National Security Algorithm Suite
// 2.0 and Quantum Computing FAQ"). For signatures of software and firmware it is 2030.
const LastYearCNSA1 Year = 2033

// Year is the last year in which something holds.
type Year int

// Never is the year of a primitive that no plan ends.
const Never Year = 9999

// The years of NIST. IR 8547 is an initial public draft of November 2024, tables 2 and 4:
// signatures and key establishment by RSA, discrete logarithms and elliptic curves are deprecated
// after 2030 if their strength is 112 bits, and all of them are disallowed after 2035.
const (
	// lastYearBelow112 is the last year of 80 bits for making signatures and for keys (SP 800-131A
	// Rev. 2, sections 3 and 6). To verify old signatures is still allowed.
	lastYearBelow112 Year = 2013
	lastYearOf112    Year = 2030
	lastYearOfSHA1   Year = 2030 // "NIST Transitioning Away from SHA-1 for All Applications", December 2022
	lastYearOfAll    Year = 2035
)

// primitiveRow is the row of a family of primitives.
type primitiveRow struct {
	family string
	kind   Kind
	// sizes are the sizes that names have, in bits, or FixedSize alone if the name is the family. A
	// name of an RSA key may have any size.
	sizes []int
	// strength returns the strength in bits of a size in bits.
	strength func(bits int) int
	// cnsa returns whether CNSA has a size in bits.
	cnsa func(bits int) CNSA
}

// Families of primitives. Names of keys on elliptic curves of NIST are names of curves.
const (
	aesFamily   = "aes"
	rsaFamily   = "rsa"
	curveFamily = "p"
	// dataKeyFamily has keys that are generated for applications, without an algorithm.
	dataKeyFamily = "data-key"
)

// The table has no digests. They are primitives with the columns of their own table.
var primitives = [...]primitiveRow{
	{aesFamily, Symmetric, aesSizes, sizeIsStrength, from(256, InCNSA1|InCNSA2)},
	{dataKeyFamily, Symmetric, aesSizes, sizeIsStrength, from(256, InCNSA1|InCNSA2)},
	{rsaFamily, Classical, []int{1024, 2048, 3072, 4096}, keyStrength(RSAKey), from(3072, InCNSA1)},
	{curveFamily, Classical, []int{224, 256, 384, 521}, keyStrength(ECDSAKey), curveCNSA},
	{"ed25519", Classical, fixedSizes, fixedStrength(128), always(OutsideCNSA)},
	{"x25519", Classical, fixedSizes, fixedStrength(128), always(OutsideCNSA)},
	{"ml-dsa-44", PostQuantum, fixedSizes, keyStrength("ML-DSA-44"), always(OutsideCNSA)},
	{"ml-dsa-65", PostQuantum, fixedSizes, keyStrength("ML-DSA-65"), always(OutsideCNSA)},
	{"ml-dsa-87", PostQuantum, fixedSizes, keyStrength("ML-DSA-87"), always(InCNSA2)},
	{"ml-kem-768", PostQuantum, fixedSizes, fixedStrength(192), always(OutsideCNSA)},
	{"ml-kem-1024", PostQuantum, fixedSizes, fixedStrength(256), always(InCNSA2)},
}

func always(c CNSA) func(int) CNSA { return func(int) CNSA { return c } }

func from(smallest int, c CNSA) func(int) CNSA {
	return func(bits int) CNSA {
		if bits >= smallest {
			return c
		}
		return OutsideCNSA
	}
}

func curveCNSA(bits int) CNSA {
	if bits == 384 {
		return InCNSA1
	}
	return OutsideCNSA
}

func keyStrength(name string) func(int) int {
	return func(size int) int {
		key, _ := FindKey(name) // a test checks that each row has a strength
		bits, _ := key.Strength(size)
		return bits
	}
}

// at returns the primitive of a size in bits: 0 if it is not known.
func (r primitiveRow) at(bits int) Primitive {
	p := Primitive{Name: r.family, Family: r.family, Bits: bits, Kind: r.kind}
	size := bits
	switch {
	case r.sizes[0] == FixedSize:
		size, p.Bits = FixedSize, 0
	case bits == 0 && r.family == rsaFamily:
		size = rsaSizes[0]
	case bits == 0:
		size = r.sizes[0]
	default:
		p.Name += "-" + strconv.Itoa(bits)
	}
	p.Strength, p.CNSA = r.strength(size), r.cnsa(size)
	p.DeprecatedAfter, p.DisallowedAfter = transition(p.Kind, p.Strength)
	return p
}

// transition returns the years of NIST, see lastYearOfAll.
func transition(kind Kind, strength int) (deprecated, disallowed Year) {
	switch {
	case kind != Classical:
		return Never, Never
	case strength < 112:
		return lastYearBelow112, lastYearBelow112
	case strength < 128:
		return lastYearOf112, lastYearOfAll
	default:
		return lastYearOfAll, lastYearOfAll
	}
}

func findPrimitive(family string) (primitiveRow, bool) {
	i := slices.IndexFunc(primitives[:], func(r primitiveRow) bool { return r.family == family })
	if i < 0 {
		return primitiveRow{}, false
	}
	return primitives[i], true
}

// primitive returns the primitive of a family that is in the table.
func primitive(family string, bits int) Primitive {
	row, known := findPrimitive(family)
	if !known {
		panic(fmt.Sprintf("no primitive %q", family)) // a test asks for all of them
	}
	return row.at(bits)
}

// DataKeyPrimitive returns a data key of a size in bits, which has no algorithm.
func DataKeyPrimitive(bits int) Primitive { return primitive(dataKeyFamily, bits) }

// AESPrimitive returns AES with keys of a size in bits: 0 if it is not known.
func AESPrimitive(bits int) Primitive { return primitive(aesFamily, bits) }

// Primitive returns the digest as a primitive.
func (d Digest) Primitive() Primitive {
	row := digests[d]
	return Primitive{row.name, row.name, 8 * row.size, row.strength, Symmetric, row.cnsa, row.disallowed, row.disallowed}
}

// deriving returns the digest as a primitive that derives keys, or masks of RSA-OAEP. Collisions
// do not matter there: SHA-1 has a strength of at least 128 bits, and the strength of SHA-2 is
// its size (table 3).
func (d Digest) deriving() Primitive {
	p := d.Primitive()
	p.Strength = 128
	if d != SHA1 {
		p.Strength = min(256, p.Bits)
	}
	return p
}

// Primitive returns keys of a size in bits as a primitive. The size is 0 if the name of the
// algorithm has it. Primitive reports false for a size that such keys do not have.
func (k Key) Primitive(bits int) (Primitive, bool) {
	p := primitive(k.family, bits)
	switch row, _ := findPrimitive(k.family); {
	case !k.IsListed():
		return p, bits == 0
	case k.family == curveFamily:
		return p, slices.Contains(row.sizes, bits)
	default:
		return p, bits >= k.MinSize && bits <= k.MaxSize
	}
}

// Primitives returns the primitives that wrap with a key of a size in bits, which is 0 if it is
// not known. For a hybrid, it returns the primitives of each half, because an attacker has to
// break both.
func (w Wrapping) Primitives(bits int) [][]Primitive {
	row, aes256 := wrappings[w], AESPrimitive(256)
	var half []Primitive
	switch row.key {
	case AESWrappingKey:
		half = []Primitive{AESPrimitive(bits)}
	case RSAWrappingKey:
		half = []Primitive{primitive(rsaFamily, bits)}
		for d := range digests {
			if digests[d].hash == row.hash && row.hash != 0 {
				half = append(half, Digest(d).deriving())
			}
		}
	case P256WrappingKey:
		half = []Primitive{primitive(curveFamily, 256), aes256}
	case P384WrappingKey:
		half = []Primitive{primitive(curveFamily, 384), aes256}
	case P521WrappingKey:
		half = []Primitive{primitive(curveFamily, 521), aes256}
	case MLKEM768WrappingKey:
		half = []Primitive{primitive("ml-kem-768", 0), aes256}
	case MLKEM1024WrappingKey:
		half = []Primitive{primitive("ml-kem-1024", 0), aes256}
	case MLKEMX25519WrappingKey:
		return xWing(aes256)
	}
	return [][]Primitive{half}
}

// Primitives returns the primitives that protect a session: of the key agreement, of the
// derivation of the key, and of the cipher. For a hybrid, it returns the primitives of each half.
func (s Session) Primitives() [][]Primitive {
	more := []Primitive{SHA256.deriving(), AESPrimitive(256)}
	if sessions[s].kem == XWing {
		return xWing(more...)
	}
	return [][]Primitive{append([]Primitive{primitive(curveFamily, 256)}, more...)}
}

// xWing returns the halves of MLKEM768-X25519. Its authors claim 128 bits for both together.
func xWing(more ...Primitive) [][]Primitive {
	kem := primitive("ml-kem-768", 0)
	kem.Strength = 128
	return [][]Primitive{append([]Primitive{kem}, more...), append([]Primitive{primitive("x25519", 0)}, more...)}
}

// Primitives returns the primitives that encrypt a stream.
func (s Stream) Primitives() []Primitive {
	return []Primitive{AESPrimitive(streams[s].keySize), SHA256.deriving()}
}

// PrimitiveNames returns the names of all primitives and of their families. An RSA key may have
// another size.
func PrimitiveNames() []string {
	var names []string
	for _, row := range primitives {
		if row.sizes[0] == FixedSize {
			names = append(names, row.family)
			continue
		}
		if row.family != curveFamily {
			names = append(names, row.family)
		}
		for _, bits := range row.sizes {
			names = append(names, row.at(bits).Name)
		}
	}
	return append(names, Digests(forAll)...)
}

// IsRSAName reports whether a name is the name of RSA keys of a size that a profile may allow.
func IsRSAName(name string) bool {
	size, is := strings.CutPrefix(name, rsaFamily+"-")
	bits, err := strconv.Atoi(size)
	key, _ := FindKey(RSAKey)
	return is && err == nil && bits >= key.MinSize && bits <= key.MaxSize && strconv.Itoa(bits) == size
}
