// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// signDataRow are the operations SignData and VerifyData.
var signDataRow = SectionRow{
	Name: "SignData",
	Operations: []OperationRow{
		{Operation: OpSignData, Name: "SignData", KeyTasks: DescribeKey | SignWithKey, Newest: true, HasFormat: true, Functions: []string{"sign"}},
		{Operation: OpVerifyData, Name: "VerifyData", KeyTasks: DescribeKey, HasFormat: true, Functions: []string{"verify"}},
	},
	Refusals:   keyRefusals,
	of:         func(a *API) section { return sectionOf(a.SignData) },
	policy:     func(c *Compiled) policy { return c.signature },
	primitives: func(u Use) ([][]algorithm.Primitive, bool) { return signaturePrimitives(u.Algorithm, u.Keys[:]) },
	objection:  Use.signatureObjection,
}

// SignData is the policy of the operations SignData and VerifyData.
type SignData struct {
	// SigningMode is "legacy", "hybrid" or "post-quantum".
	SigningMode     string               `yaml:"SigningMode,omitempty"`
	SignAlg         string               `yaml:"SignAlg"`
	HashAlg         string               `yaml:"HashAlg,omitempty"`
	SignatureFormat string               `yaml:"SignatureFormat,omitempty"`
	KeyConstraints  keyrules.Constraints `yaml:"KeyConstraints,omitempty"`
	KeyIDs          []keyrules.ID        `yaml:"KeyIds,omitempty"`
}

const (
	signingLegacy      = "legacy"
	signingHybrid      = "hybrid"
	signingPostQuantum = "post-quantum"
)

var signingModes = []string{signingLegacy, signingHybrid, signingPostQuantum}

func (s *SignData) validate(v validator, at yamlfile.Place) {
	mode := strings.ToLower(s.SigningMode)
	if s.SigningMode == "" && !v.Present(at.Field("SigningMode")) {
		mode = signingLegacy
	} else {
		v.Enum(at.Field("SigningMode"), at, s.SigningMode, signingModes)
	}
	v.signAlgorithm(at.Field("SignAlg"), at, mode, s.SignAlg)
	v.signHash(at, s.SignAlg, s.HashAlg, algorithm.Digests(algorithm.ForSignatures))
	if s.SignatureFormat != "" || v.Present(at.Field("SignatureFormat")) {
		v.Enum(at.Field("SignatureFormat"), at, s.SignatureFormat, signatureFormatNames[:])
		v.cms(at, s)
	}
	s.KeyConstraints.Check(v.Report, at.Field("KeyConstraints"))
	v.usableKeys(at, s)
	keyrules.CheckIDs(v.Report, at.Field("KeyIds"), s.KeyIDs)
}

func (s *SignData) format() algorithm.Format {
	return max(algorithm.SignatureFormat(s.SignAlg), algorithm.DigestFormat(s.HashAlg), s.KeyConstraints.Format(), formatOf(len(s.KeyIDs) > 0))
}

func (s *SignData) compile(c *Compiled, o compileOptions) { c.signature = s.policy(o) }

func (s *SignData) judge() []judgement {
	policy := s.policy(compileOptions{})
	judged := func(limits keyrules.Limits) judgement {
		return judgement{policy.Algorithm(), []Strength{signatureStrength(s.SignAlg, s.HashAlg, limits)}, signatureObjection(s.SignAlg, s.HashAlg, limits)}
	}
	return []judgement{judged(policy.Signs()), judged(policy.Checks())}
}

// Signature returns the policy of SignData and VerifyData, or nil if the profile does not offer
// them.
func (c *Compiled) Signature() *SignaturePolicy { return c.signature }

func (s *SignData) listedKeys() []keyrules.ID { return s.KeyIDs }

func (s *SignData) warn(w warner, at yamlfile.Place, p *Profile, manager *KMS) {
	w.curves(at, s.KeyConstraints)
	w.external(at, s.KeyIDs, manager)
	w.unlisted(at, s.KeyIDs, p, manager)
}

// cms refuses the format CMS in a profile whose algorithms CMS does not support.
func (v validator) cms(at yamlfile.Place, s *SignData) {
	if !strings.EqualFold(s.SignatureFormat, SignatureCMS.String()) || v.Failed[at.Field("SignAlg")] || v.Failed[at.Field("HashAlg")] {
		return
	}
	signs := algorithm.FindSignatures(s.SignAlg)
	digest, _ := algorithm.FindDigest(s.HashAlg)
	if len(signs) != 1 || len(signs[0].CMS(digest.Hash())) == 0 {
		v.Add(at.Field("SignatureFormat"), at, "found \"CMS\", which needs SignAlg \"rsa\" or \"ecdsa\" with a HashAlg \"sha-256\", \"sha-384\" or \"sha-512\"")
	}
}

// usableKeys refuses constraints that allow no key of the algorithm. Keys that are not listed are
// refused, so such a profile would refuse every call.
func (v validator) usableKeys(at yamlfile.Place, s *SignData) {
	if v.Failed[at.Field("SignAlg")] {
		return
	}
	for _, sign := range algorithm.FindSignatures(s.SignAlg) {
		key := sign.Key()
		if !key.IsListed() {
			continue
		}
		for name, sizes := range map[string]map[string]keyrules.Size{"Subject": s.KeyConstraints.Subject, "Issuer": s.KeyConstraints.Issuer} {
			if _, listed := sizes[key.Name]; len(sizes) > 0 && !listed {
				where := at.Field("KeyConstraints")
				v.Add(where.Field(name), where, "does not list %q, the keys of SignAlg %q, so that every key would be refused", key.Name, s.SignAlg)
			}
		}
	}
}

// signAlgorithm checks that the algorithm fits the mode: a classical algorithm, a post-quantum
// algorithm, or for a hybrid one of each, joined by "+".
func (v validator) signAlgorithm(at, around yamlfile.Place, mode, found string) {
	classical, postQuantum := algorithm.Signatures(algorithm.Classical), algorithm.Signatures(algorithm.PostQuantum)
	want := map[string]string{
		signingLegacy:      "one of " + yamlfile.List(classical),
		signingPostQuantum: "one of " + yamlfile.List(postQuantum),
		signingHybrid:      "one of " + yamlfile.List(classical) + " and one of " + yamlfile.List(postQuantum) + ", joined by +, such as \"ecdsa+ml-dsa-65\"",
	}[mode]
	fits := modeOf(found)
	switch {
	case want == "" || fits == mode: // for an unknown mode there is another message
	case fits != "":
		v.Add(at, around, "found %s in mode %q, expected %s; %s is for SigningMode %q", yamlfile.Excerpt(found), mode, want, yamlfile.Excerpt(found), fits)
	case mode == signingLegacy:
		v.Enum(at, around, found, classical)
	case mode == signingPostQuantum:
		v.Enum(at, around, found, postQuantum)
	case found == "":
		v.Required(at, around, want)
	default:
		v.Add(at, around, "found %s in mode %q, expected %s", yamlfile.Excerpt(found), mode, want)
	}
}

// modeOf returns the SigningMode of a SignAlg. It is empty for an unknown SignAlg.
func modeOf(signAlg string) string {
	kinds := []algorithm.Kind{}
	for part := range strings.SplitSeq(signAlg, "+") {
		s, known := algorithm.FindSignature(part)
		if !known {
			return ""
		}
		kinds = append(kinds, s.Kind())
	}
	switch {
	case len(kinds) == 2 && kinds[0] == algorithm.Classical && kinds[1] == algorithm.PostQuantum:
		return signingHybrid
	case len(kinds) != 1:
		return ""
	case kinds[0] == algorithm.PostQuantum:
		return signingPostQuantum
	default:
		return signingLegacy
	}
}

// policy compiles a valid section.
func (s *SignData) policy(o compileOptions) *SignaturePolicy {
	given := len(s.KeyIDs) == 0
	p := &SignaturePolicy{
		signs:       keyrules.NewLimits(s.KeyConstraints.Issuer, s.KeyConstraints.Subject, given),
		checks:      keyrules.NewLimits(s.KeyConstraints.Subject, s.KeyConstraints.Issuer, given),
		keys:        keyrules.NewPolicy(s.KeyIDs, o.manager.rules()),
		requireFIPS: o.requireFIPS,
	}
	var names []string
	for part := range strings.SplitSeq(s.SignAlg, "+") {
		c := SignatureComponent{Algorithm: validated(algorithm.FindSignature(part))}
		name := c.Algorithm.String()
		if c.Algorithm.TakesDigest() {
			digest := validated(algorithm.FindDigest(s.HashAlg))
			c.Hash = digest.Hash()
			name = withDigest(c.Algorithm, digest)
		}
		p.components = append(p.components, c)
		names = append(names, name)
	}
	p.name = strings.Join(names, "+")
	if s.SignatureFormat != "" {
		p.format, p.fixed = validated(FindSignatureFormat(s.SignatureFormat)), true
	}
	return p
}
