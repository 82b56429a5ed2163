// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// hashDataRow is the operation HashData.
var hashDataRow = SectionRow{
	Name:       "HashData",
	Operations: []OperationRow{{Operation: OpHashData, Name: "HashData", Quick: true, Functions: []string{"digest"}}},
	Refusals:   []string{"INVALID_ARGUMENT", "FAILED_PRECONDITION", "PERMISSION_DENIED", "UNAVAILABLE"},
	of:         func(a *API) section { return sectionOf(a.HashData) },
	policy:     func(c *Compiled) policy { return c.hash },
	primitives: func(u Use) ([][]algorithm.Primitive, bool) {
		digest, known := algorithm.FindDigest(u.Algorithm)
		if !known {
			return nil, false
		}
		return oneHalf(digest.Primitive()), true
	},
	objection: func(u Use) string {
		digest, _ := algorithm.FindDigest(u.Algorithm)
		return objection(u.Algorithm, digest.Approval())
	},
}

// HashData is the policy of the HashData operation.
type HashData struct {
	// HashAlg is one of the names of algorithm.Digests for data. Upper and lower case do not
	// matter.
	HashAlg string `yaml:"HashAlg"`
}

func (h *HashData) validate(v validator, at yamlfile.Place) {
	v.Enum(at.Field("HashAlg"), at, h.HashAlg, algorithm.Digests(algorithm.ForData))
}

func (h *HashData) format() algorithm.Format { return algorithm.DigestFormat(h.HashAlg) }

func (h *HashData) compile(c *Compiled, _ compileOptions) {
	c.hash = &HashPolicy{validated(algorithm.FindDigest(h.HashAlg))}
}

// Hash returns the policy of HashData, or nil if the profile does not offer it.
func (c *Compiled) Hash() *HashPolicy { return c.hash }

func (h *HashData) judge() []judgement {
	digest := validated(algorithm.FindDigest(h.HashAlg))
	return []judgement{{digest.String(), []Strength{digestStrength(digest)}, digestObjection("HashAlg", digest)}}
}

func (*HashData) listedKeys() []keyrules.ID { return nil }

func (h *HashData) warn(warner, yamlfile.Place, *Profile, *KMS) {}

// HashPolicy is the compiled policy of HashData.
type HashPolicy struct{ digest algorithm.Digest }

// Algorithm is the digest to compute.
func (h *HashPolicy) Algorithm() algorithm.Digest { return h.digest }

// Keys returns nil: digests have no keys.
func (*HashPolicy) Keys() *keyrules.Policy { return nil }

func (h *HashPolicy) effect(u Use) (Effect, string) { return changed(u.Algorithm, h.digest.String()) }

func (h *HashPolicy) extremes(op Operation) []Use {
	return []Use{{Operation: op, Algorithm: h.digest.String()}}
}
