// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"crypto"
	_ "crypto/sha1" //nolint:gosec // for identifiers of keys only (RFC 5280, section 4.2.1.2)
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"io"
)

// Digest is a digest algorithm. The zero value is not a digest.
type Digest uint8

// The digests of FIPS 180-4 (SHA-1 and SHA-2) and FIPS 202 (SHA-3 and SHAKE).
//
//nolint:revive // the constants of Go's package crypto have the same names
const (
	SHA1 Digest = iota + 1
	SHA256
	SHA384
	SHA512
	SHA512_256
	SHA3_256
	SHA3_384
	SHA3_512
	SHAKE128
	SHAKE256
)

// Use is a purpose for which a profile may choose a digest. Uses can be combined.
type Use uint8

const (
	// ForData is the use in the operation HashData.
	ForData Use = 1 << iota
	// ForSignatures is the use in signatures of data.
	ForSignatures
	// ForCertificates is the use in signatures of certificates.
	ForCertificates
	// ForKeyIdentifiers is the use in identifiers of keys, which do not need resistance to
	// collisions (RFC 5280, section 4.2.1.2; RFC 7093).
	ForKeyIdentifiers
)

// digestRow is the row of a digest in the registry.
type digestRow struct {
	name string
	// strength is the resistance to collisions in bits (table 3). The strength of SHAKE is
	// at most half of the size of its output (FIPS 202, appendix A.1). The strength of SHA-1
	// is reduced by the attacks that were known in 2020.
	strength int
	approval Approval
	since    Format
	// size is the size of the output in bytes. SHAKE has the sizes of released brokers.
	size int
	uses Use
	// hash is the constant of Go's package crypto, 0 for SHAKE, which signatures do not
	// use.
	hash crypto.Hash
	// sum appends the digest of a whole message. start begins the digest of a message that
	// comes in parts.
	sum   func(dst, message []byte) []byte
	start func() Running
	// cnsa says which suites have the digest. CNSA 2.0 has SHA-3 only within hardware, for its
	// own use.
	cnsa CNSA
	// disallowed is the last year before NIST disallows the digest.
	disallowed Year
}

func (r digestRow) entry() (string, Format) { return r.name, r.since }

const forAll = ForData | ForSignatures | ForCertificates | ForKeyIdentifiers

var digests = [...]digestRow{
	SHA1: {"sha-1", 61, NotApproved, Format0, 20, ForKeyIdentifiers, crypto.SHA1,
		func(dst, message []byte) []byte {
			h := crypto.SHA1.New()
			h.Write(message)
			return h.Sum(dst)
		}, running(crypto.SHA1.New), OutsideCNSA, lastYearOfSHA1},
	SHA256: {"sha-256", 128, Approved, Format0, sha256.Size, forAll, crypto.SHA256,
		func(dst, message []byte) []byte { s := sha256.Sum256(message); return append(dst, s[:]...) }, running(sha256.New), OutsideCNSA, Never},
	SHA384: {"sha-384", 192, Approved, Format0, sha512.Size384, forAll, crypto.SHA384,
		func(dst, message []byte) []byte { s := sha512.Sum384(message); return append(dst, s[:]...) }, running(sha512.New384), InCNSA1 | InCNSA2, Never},
	SHA512: {"sha-512", 256, Approved, Format0, sha512.Size, forAll, crypto.SHA512,
		func(dst, message []byte) []byte { s := sha512.Sum512(message); return append(dst, s[:]...) }, running(sha512.New), InCNSA2, Never},
	SHA512_256: {"sha-512/256", 128, Approved, Format0, sha512.Size256, ForData, crypto.SHA512_256,
		func(dst, message []byte) []byte { s := sha512.Sum512_256(message); return append(dst, s[:]...) }, running(sha512.New512_256), OutsideCNSA, Never},
	SHA3_256: {"sha3-256", 128, Approved, Format0, 32, forAll &^ ForCertificates, crypto.SHA3_256,
		func(dst, message []byte) []byte { s := sha3.Sum256(message); return append(dst, s[:]...) }, running(sha3.New256), OutsideCNSA, Never},
	SHA3_384: {"sha3-384", 192, Approved, Format0, 48, forAll &^ ForCertificates, crypto.SHA3_384,
		func(dst, message []byte) []byte { s := sha3.Sum384(message); return append(dst, s[:]...) }, running(sha3.New384), OutsideCNSA, Never},
	SHA3_512: {"sha3-512", 256, Approved, Format0, 64, forAll &^ ForCertificates, crypto.SHA3_512,
		func(dst, message []byte) []byte { s := sha3.Sum512(message); return append(dst, s[:]...) }, running(sha3.New512), OutsideCNSA, Never},
	SHAKE128: {"shake-128", 64, Approved, Format0, shake128Size, ForData, 0,
		func(dst, message []byte) []byte { return append(dst, sha3.SumSHAKE128(message, shake128Size)...) },
		func() Running { return &shake{sha3.NewSHAKE128(), shake128Size} }, OutsideCNSA, Never},
	SHAKE256: {"shake-256", 128, Approved, Format0, shake256Size, ForData, 0,
		func(dst, message []byte) []byte { return append(dst, sha3.SumSHAKE256(message, shake256Size)...) },
		func() Running { return &shake{sha3.NewSHAKE256(), shake256Size} }, OutsideCNSA, Never},
}

// MaxDigestSize is the size of the longest digest, in bytes.
const MaxDigestSize = sha512.Size

const (
	shake128Size = 16
	shake256Size = 32
)

// Digests returns the names of all digests for a use, in the order of the constants.
func Digests(use Use) []string {
	var names []string
	for _, row := range digests {
		if row.uses&use != 0 {
			names = append(names, row.name)
		}
	}
	return names
}

// FindDigest returns the digest with this name. Upper and lower case do not matter.
func FindDigest(name string) (Digest, bool) { return find[Digest](digests[:], name) }

// String returns the name in lower case. Replies have the same name.
func (d Digest) String() string { return digests[d].name }

// Strength returns the resistance to collisions in bits.
func (d Digest) Strength() int { return digests[d].strength }

// Approval returns the verdict of FIPS 140-3.
func (d Digest) Approval() Approval { return digests[d].approval }

// Hash returns the constant of Go's package crypto. It is 0 for SHAKE.
func (d Digest) Hash() crypto.Hash { return digests[d].hash }

// AppendSum appends the digest of a message to dst and returns the extended slice. If dst has
// room for MaxDigestSize bytes, only SHAKE allocates.
func (d Digest) AppendSum(dst, message []byte) []byte { return digests[d].sum(dst, message) }

// Start begins the digest of a message that comes in parts.
func (d Digest) Start() Running { return digests[d].start() }

// DigestFormat returns the first version of the profile format that has the digest with this
// name. It is Format0 for an empty name, and the newest version for an unknown name.
func DigestFormat(name string) Format { return formatOf(digests[:], name) }

// Running is the digest of a message that comes in parts. Write never returns an error. Sum
// appends the digest to dst. Nothing may be written afterwards.
type Running interface {
	io.Writer
	Sum(dst []byte) []byte
}

func running[H Running](start func() H) func() Running {
	return func() Running { return start() }
}

// shake is SHAKE with a fixed size of its output in bytes.
type shake struct {
	*sha3.SHAKE
	size int
}

// Sum implements Running.
func (s *shake) Sum(dst []byte) []byte {
	var sum [shake256Size]byte
	_, _ = s.Read(sum[:s.size]) // never returns an error
	return append(dst, sum[:s.size]...)
}
