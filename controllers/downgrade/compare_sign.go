// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

var _ = compares("SignData", (*comparison).signature)

func (c *comparison) signature(previous, changed side) {
	before, after := previous.SignData, changed.SignData
	const at = "API.SignData."
	oldClassical, oldQuantum := components(before.SignAlg, before.HashAlg)
	newClassical, newQuantum := components(after.SignAlg, after.HashAlg)
	switch {
	case oldQuantum != 0 && newQuantum == 0:
		c.add(at+"SigningMode", signingMode(before), signingMode(after), "a quantum computer can forge signatures of %q, but could not forge signatures of %q", after.SignAlg, before.SignAlg)
	case oldQuantum != 0 && oldClassical.sign != 0 && newClassical.sign == 0:
		c.add(at+"SigningMode", signingMode(before), signingMode(after), "%q is one signature, %q were two, and both had to be valid", after.SignAlg, before.SignAlg)
	}
	if oldQuantum != 0 && newQuantum != 0 && weaker(newQuantum, oldQuantum) {
		c.add(at+"SignAlg", before.SignAlg, after.SignAlg, "%q is weaker than %q", newQuantum.String(), oldQuantum.String())
	}
	// keyIDs compares the keys that may be used.
	unlimited := keyrules.DefaultLimits(len(after.KeyIDs) == 0)
	old, new := before.KeyConstraints, after.KeyConstraints
	signs := limits{before: either(old.Issuer, old.Subject, unlimited), after: either(new.Issuer, new.Subject, unlimited)}
	checks := limits{before: either(old.Subject, old.Issuer, unlimited), after: either(new.Subject, new.Issuer, unlimited)}
	if oldClassical.sign != 0 && newClassical.sign != 0 {
		c.signing(at, "KeyConstraints.Issuer", oldClassical, newClassical, signs)
		if !checks.equal(signs) {
			c.verifying(at+"KeyConstraints.Subject", oldClassical, newClassical, checks)
		}
	}
	c.keyIDs(at+"KeyIds", before.KeyIDs, after.KeyIDs)
}

// components returns the classical and the post-quantum algorithm of a SignAlg, or 0.
func components(signAlg, hash string) (signs classical, postQuantum algorithm.Signature) {
	for _, s := range algorithm.FindSignatures(signAlg) {
		if s.Kind() == algorithm.PostQuantum {
			postQuantum = s
		} else {
			signs = classical{sign: s, hash: hash, written: signAlg}
		}
	}
	return signs, postQuantum
}

// weaker reports whether a post-quantum algorithm is weaker than another one. The names of both
// have the size of keys.
func weaker(a, b algorithm.Signature) bool {
	bits, _ := a.Key().Strength(algorithm.FixedSize)
	others, _ := b.Key().Strength(algorithm.FixedSize)
	return bits < others
}

func signingMode(s *profile.SignData) string {
	if s.SigningMode == "" {
		return "legacy"
	}
	return strings.ToLower(s.SigningMode)
}

// either returns the limits of one side. If a profile limits only the other side, those limits
// count for both.
func either(own, other map[string]keyrules.Size, unlimited keyrules.Limits) keyrules.Limits {
	switch {
	case len(own) > 0:
		return own
	case len(other) > 0:
		return other
	default:
		return unlimited
	}
}
