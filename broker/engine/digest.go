// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// MaxDigestSize is the size of the longest digest, in bytes.
const MaxDigestSize = algorithm.MaxDigestSize

// AppendDigest appends the digest of the input to dst and returns the extended slice. The
// profile says the algorithm (FIPS 180-4 and FIPS 202). AppendDigest does not allocate if dst
// has room for MaxDigestSize bytes.
func AppendDigest(dst []byte, policy *profile.HashPolicy, input []byte) []byte {
	return policy.Algorithm().AppendSum(dst, input)
}
