// SPDX-License-Identifier: Apache-2.0

package profile

import "strings"

// HashAlgorithm is one of the digests a profile may choose for HashData.
type HashAlgorithm uint8

// The digests of FIPS 180-4 (SHA-2) and FIPS 202 (SHA-3 and SHAKE). SHAKE-128
// yields 16 bytes and SHAKE-256 yields 32.
//
//nolint:revive // the names are those of the constants of Go's package crypto
const (
	SHA256 HashAlgorithm = iota
	SHA384
	SHA512
	SHA512_256
	SHA3_256
	SHA3_384
	SHA3_512
	SHAKE128
	SHAKE256
)

// hashAlgorithmNames are the canonical spellings, at the index of their value.
var hashAlgorithmNames = [...]string{
	SHA256:     "sha-256",
	SHA384:     "sha-384",
	SHA512:     "sha-512",
	SHA512_256: "sha-512/256",
	SHA3_256:   "sha3-256",
	SHA3_384:   "sha3-384",
	SHA3_512:   "sha3-512",
	SHAKE128:   "shake-128",
	SHAKE256:   "shake-256",
}

// String returns the canonical lower-case name, which is also what replies carry.
func (a HashAlgorithm) String() string { return hashAlgorithmNames[a] }

// HashAlgorithms returns the canonical names of all digests, in the order of
// their values. A profile may write them in any case.
func HashAlgorithms() []string {
	return append([]string(nil), hashAlgorithmNames[:]...)
}

func parseHashAlgorithm(name string) (HashAlgorithm, bool) {
	for i, known := range hashAlgorithmNames {
		if strings.EqualFold(known, name) {
			return HashAlgorithm(i), true
		}
	}
	return 0, false
}
