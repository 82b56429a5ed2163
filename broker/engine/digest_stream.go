// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Digest computes the digest of an input that comes in parts.
type Digest struct{ running algorithm.Running }

// NewDigest begins a digest with the algorithm of the profile. The digest of all parts is the
// digest that [AppendDigest] returns for the whole input.
func NewDigest(policy *profile.HashPolicy) *Digest {
	return &Digest{policy.Algorithm().Start()}
}

// Add adds the next part of the input.
func (d *Digest) Add(part []byte) { _, _ = d.running.Write(part) } // never returns an error

// Append appends the digest to dst and returns the extended slice. Nothing may be added
// afterwards.
func (d *Digest) Append(dst []byte) []byte { return d.running.Sum(dst) }
