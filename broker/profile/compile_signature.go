// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto"
	"maps"
	"strings"
)

// SignatureAlgorithm is one of the algorithms a profile may choose for SignData.
type SignatureAlgorithm uint8

// The signature algorithms: RSASSA-PKCS1-v1_5 and RSASSA-PSS (RFC 8017), ECDSA
// (FIPS 186-5), Ed25519 (RFC 8032) and ML-DSA (FIPS 204).
const (
	RSAPKCS1v15 SignatureAlgorithm = iota
	RSAPSS
	ECDSA
	Ed25519
	MLDSA44
	MLDSA65
	MLDSA87
)

var signatureAlgorithmNames = [...]string{
	RSAPKCS1v15: "rsa",
	RSAPSS:      "rsa-pss",
	ECDSA:       "ecdsa",
	Ed25519:     "ed25519",
	MLDSA44:     "ml-dsa-44",
	MLDSA65:     "ml-dsa-65",
	MLDSA87:     "ml-dsa-87",
}

// String returns the name that profiles use, in lower case.
func (a SignatureAlgorithm) String() string { return signatureAlgorithmNames[a] }

// SignatureFormat is how a signature is written.
type SignatureFormat uint8

// The formats, named as in profiles and on the wire.
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

// SignatureComponent is one signature with its algorithm.
type SignatureComponent struct {
	Algorithm SignatureAlgorithm
	// Hash digests the input before it is signed, 0 where the algorithm takes
	// the input as a whole.
	Hash crypto.Hash
}

// SignaturePolicy is what a profile says about SignData and VerifyData.
type SignaturePolicy struct {
	components    []SignatureComponent
	name          string
	format        SignatureFormat
	fixed         bool
	signs, checks KeyLimits
	keys          *KeyPolicy
	requireFIPS   bool
}

// Components are the signatures to make: one, or for a hybrid two, of which the
// first is the classical one.
func (s *SignaturePolicy) Components() []SignatureComponent { return s.components }

// Algorithm is the name that replies have, such as "ecdsa-with-sha-256" or, for
// a hybrid, "ecdsa-with-sha-256+ml-dsa-65".
func (s *SignaturePolicy) Algorithm() string { return s.name }

// Format is the only format that may be asked for; false where any may.
func (s *SignaturePolicy) Format() (SignatureFormat, bool) { return s.format, s.fixed }

// Signs limits the keys that sign, Checks those that signatures are checked
// with. A profile that limits only one of them means both.
func (s *SignaturePolicy) Signs() KeyLimits { return s.signs }

// Checks limits the keys that signatures are checked with, see Signs.
func (s *SignaturePolicy) Checks() KeyLimits { return s.checks }

// Keys says which of the broker's keys may be used, nil where requests bring
// their own.
func (s *SignaturePolicy) Keys() *KeyPolicy { return s.keys }

// RequiresFIPS tells that keys must be approved as well, see RequireFIPS.
func (s *SignaturePolicy) RequiresFIPS() bool { return s.requireFIPS }

// HasCMS tells whether a CMS SignedData can be made of the signatures: of one
// RSASSA-PKCS1-v1_5 or ECDSA signature over a SHA-2 digest (RFC 5754).
func HasCMS(components []SignatureComponent) bool {
	if len(components) != 1 {
		return false
	}
	c := components[0]
	return (c.Algorithm == RSAPKCS1v15 || c.Algorithm == ECDSA) &&
		(c.Hash == crypto.SHA256 || c.Hash == crypto.SHA384 || c.Hash == crypto.SHA512)
}

// KeyLimits maps key algorithms ("RSA", "ECDSA", "Ed25519") to the sizes
// allowed. Where it is nil, a key needs the 112 bits of security strength that
// NIST SP 800-131A Rev. 2 demands of every signature. ML-DSA is not in it, since
// the algorithm of the profile fixes the size.
type KeyLimits map[string]KeySize

// defaultKeyLimits has the smallest sizes of 112 bits of security strength.
var defaultKeyLimits = KeyLimits{
	"RSA":     {MinKeySize: 2048, MaxKeySize: MaxRSAKeySize},
	"ECDSA":   {MinKeySize: minECDSAKeySize, MaxKeySize: maxECDSAKeySize},
	"Ed25519": {MinKeySize: ed25519KeySize, MaxKeySize: ed25519KeySize},
}

// maxGivenRSAKeySize is the size in bits of the largest RSA key that a request
// may bring unless the profile allows larger ones: the time that a key takes
// grows with the cube of its size.
const maxGivenRSAKeySize = 4096

// DefaultKeyLimits are those of SignData where its KeyConstraints list nothing.
// given is whether requests bring the keys.
func DefaultKeyLimits(given bool) KeyLimits {
	limits := maps.Clone(defaultKeyLimits)
	if given {
		limits["RSA"] = KeySize{MinKeySize: limits["RSA"].MinKeySize, MaxKeySize: maxGivenRSAKeySize}
	}
	return limits
}

// LargestGivenRSA is the size in bits of the largest RSA key that a request may
// bring. Where the limits do not list RSA at all, a key of a usual size is still
// read, so that its sender learns that.
func (l KeyLimits) LargestGivenRSA() int {
	if size, listed := l["RSA"]; listed {
		return size.MaxKeySize
	}
	return maxGivenRSAKeySize
}

// Range returns the sizes in bits that a key of the algorithm may have, both
// ends included; false where it may not be used at all.
func (l KeyLimits) Range(algorithm string) (KeySize, bool) {
	if l == nil {
		l = defaultKeyLimits
	}
	size, ok := l[algorithm]
	return size, ok
}

var hashes = map[string]crypto.Hash{
	"sha-256": crypto.SHA256, "sha-384": crypto.SHA384, "sha-512": crypto.SHA512,
	"sha3-256": crypto.SHA3_256, "sha3-384": crypto.SHA3_384, "sha3-512": crypto.SHA3_512,
}

func compileSignature(s *SignData, o compileOptions) *SignaturePolicy {
	if s == nil {
		return nil
	}
	given := len(s.KeyIDs) == 0
	p := &SignaturePolicy{
		signs:  keyLimits(s.KeyConstraints.Issuer, s.KeyConstraints.Subject, given),
		checks: keyLimits(s.KeyConstraints.Subject, s.KeyConstraints.Issuer, given),
		keys:   compileKeyIDs(s.KeyIDs, o.manager),

		requireFIPS: o.requireFIPS,
	}
	var names []string
	for part := range strings.SplitSeq(strings.ToLower(s.SignAlg), "+") {
		c := SignatureComponent{Algorithm: mustFind[SignatureAlgorithm](signatureAlgorithmNames[:], part)}
		name := c.Algorithm.String()
		if hashesSeparately(part) {
			hash := strings.ToLower(s.HashAlg)
			c.Hash = hashes[hash]
			if c.Hash == 0 {
				panic("profile: compile of a profile that was not validated")
			}
			name += "-with-" + hash
		}
		p.components = append(p.components, c)
		names = append(names, name)
	}
	p.name = strings.Join(names, "+")
	if s.SignatureFormat != "" {
		p.format, p.fixed = mustFind[SignatureFormat](signatureFormatNames[:], s.SignatureFormat), true
	}
	return p
}

// mustFind returns the index of a name, in any case, in a table of names.
func mustFind[T ~uint8](names []string, name string) T {
	for i, known := range names {
		if strings.EqualFold(known, name) {
			return T(i)
		}
	}
	panic("profile: compile of a profile that was not validated")
}

func keyLimits(own, other map[string]KeySize, given bool) KeyLimits {
	if own == nil {
		own = other
	}
	if own == nil {
		return DefaultKeyLimits(given)
	}
	return maps.Clone(own)
}
