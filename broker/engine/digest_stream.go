// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"hash"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Digest computes the digest of an input that comes in parts.
type Digest struct {
	hash  hash.Hash   // nil where shake is not
	shake *sha3.SHAKE // nil where hash is not
	size  int         // of the output of shake, in bytes
}

// NewDigest begins a digest by the profile's algorithm. All parts together have
// the digest that AppendDigest computes of the whole.
func NewDigest(policy *profile.HashPolicy) *Digest {
	switch policy.Algorithm() {
	case profile.SHA256:
		return &Digest{hash: sha256.New()}
	case profile.SHA384:
		return &Digest{hash: sha512.New384()}
	case profile.SHA512:
		return &Digest{hash: sha512.New()}
	case profile.SHA512_256:
		return &Digest{hash: sha512.New512_256()}
	case profile.SHA3_256:
		return &Digest{hash: sha3.New256()}
	case profile.SHA3_384:
		return &Digest{hash: sha3.New384()}
	case profile.SHA3_512:
		return &Digest{hash: sha3.New512()}
	case profile.SHAKE128:
		return &Digest{shake: sha3.NewSHAKE128(), size: shake128Size}
	case profile.SHAKE256:
		return &Digest{shake: sha3.NewSHAKE256(), size: shake256Size}
	default:
		panic("engine: no digest named " + policy.Algorithm().String())
	}
}

// Add takes the next part of the input.
func (d *Digest) Add(part []byte) {
	// Neither ever returns an error.
	if d.shake != nil {
		_, _ = d.shake.Write(part)
	} else {
		_, _ = d.hash.Write(part)
	}
}

// Append appends the digest to dst and returns the extended slice. The digest
// ends with it: nothing can be added any more.
func (d *Digest) Append(dst []byte) []byte {
	if d.shake == nil {
		return d.hash.Sum(dst)
	}
	var sum [shake256Size]byte
	_, _ = d.shake.Read(sum[:d.size]) // as above
	return append(dst, sum[:d.size]...)
}
