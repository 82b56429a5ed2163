// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// MaxDigestSize is the size of the longest digest, in bytes.
const MaxDigestSize = sha512.Size

// Output sizes of the extendable-output functions in bytes, as released brokers
// have them. In bits of strength (FIPS 202, appendix A.1): 16 bytes of SHAKE128
// resist preimages at 128 and collisions at 64, 32 bytes of SHAKE256 at 256 and
// 128.
const (
	shake128Size = 16
	shake256Size = 32
)

// AppendDigest appends the digest of the input by the profile's algorithm (FIPS
// 180-4 and FIPS 202) and returns the extended slice. With MaxDigestSize bytes
// of capacity left it allocates nothing.
func AppendDigest(dst []byte, policy *profile.HashPolicy, input []byte) []byte {
	switch policy.Algorithm() {
	case profile.SHA256:
		sum := sha256.Sum256(input)
		return append(dst, sum[:]...)
	case profile.SHA384:
		sum := sha512.Sum384(input)
		return append(dst, sum[:]...)
	case profile.SHA512:
		sum := sha512.Sum512(input)
		return append(dst, sum[:]...)
	case profile.SHA512_256:
		sum := sha512.Sum512_256(input)
		return append(dst, sum[:]...)
	case profile.SHA3_256:
		sum := sha3.Sum256(input)
		return append(dst, sum[:]...)
	case profile.SHA3_384:
		sum := sha3.Sum384(input)
		return append(dst, sum[:]...)
	case profile.SHA3_512:
		sum := sha3.Sum512(input)
		return append(dst, sum[:]...)
	case profile.SHAKE128:
		return append(dst, sha3.SumSHAKE128(input, shake128Size)...)
	case profile.SHAKE256:
		return append(dst, sha3.SumSHAKE256(input, shake256Size)...)
	default:
		panic("engine: no digest named " + policy.Algorithm().String())
	}
}
