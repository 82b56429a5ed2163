// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func (c *comparison) hash(before, after *profile.HashData) {
	if before == nil || after == nil {
		return
	}
	c.digest("API.HashData.HashAlg", before.HashAlg, after.HashAlg)
}

// digest compares two digest algorithms by their strength.
func (c *comparison) digest(field, before, after string) {
	old, new := profile.DigestStrength(before), profile.DigestStrength(after)
	if new.Bits < old.Bits {
		c.add(field, before, after, "%q has a strength of %s, %q had %s", after, bits(new), before, bits(old))
	}
}

func (c *comparison) cipher(before, after *profile.EncryptData) {
	if before == nil || after == nil {
		return
	}
	const at = "API.EncryptData."
	if !strings.EqualFold(before.EncryptAlg, after.EncryptAlg) {
		c.add(at+"EncryptAlg", before.EncryptAlg, after.EncryptAlg, "found %q in the place of %q, which it can't be compared with", after.EncryptAlg, before.EncryptAlg)
	}
	c.shorter(at+"KeySize", "the key", before.KeySize, after.KeySize)
	old, new := nonceStrategy(before), nonceStrategy(after)
	if old == "random" && new != old {
		c.add(at+"NonceStrategy", old, new, "the caller makes the nonce and may use one twice, which gives away what is encrypted; the broker made it")
	}
	c.shorter(at+"ShortTagLength", "the authentication tag", before.TagBits(), after.TagBits())
	c.keyIDs(at+"KeyIds", before.KeyIDs, after.KeyIDs)
}

func (c *comparison) shorter(field, what string, before, after int) {
	if after < before {
		c.add(field, strconv.Itoa(before), strconv.Itoa(after), "%s has %d bits, it had %d", what, after, before)
	}
}

func nonceStrategy(e *profile.EncryptData) string {
	if e.NonceStrategy == "" {
		return "user-provided"
	}
	return strings.ToLower(e.NonceStrategy)
}

func (c *comparison) signature(before, after *profile.SignData) {
	if before == nil || after == nil {
		return
	}
	const at = "API.SignData."
	oldClassical, oldQuantum := components(before.SignAlg)
	newClassical, newQuantum := components(after.SignAlg)
	switch {
	case oldQuantum != "" && newQuantum == "":
		c.add(at+"SigningMode", signingMode(before), signingMode(after), "a quantum computer can forge what %q makes, and not what %q made", after.SignAlg, before.SignAlg)
	case oldQuantum != "" && oldClassical != "" && newClassical == "":
		c.add(at+"SigningMode", signingMode(before), signingMode(after), "%q is one signature, %q were two of which each had to hold", after.SignAlg, before.SignAlg)
	}
	if oldQuantum != "" && newQuantum != "" && newQuantum < oldQuantum { // ml-dsa-44, 65, 87
		c.add(at+"SignAlg", before.SignAlg, after.SignAlg, "%q is weaker than %q", newQuantum, oldQuantum)
	}
	// Whose keys are used makes a difference of its own, see keyIDs.
	unlimited := profile.DefaultKeyLimits(len(after.KeyIDs) == 0)
	old, new := before.KeyConstraints, after.KeyConstraints
	signs := limits{before: either(old.Issuer, old.Subject, unlimited), after: either(new.Issuer, new.Subject, unlimited)}
	checks := limits{before: either(old.Subject, old.Issuer, unlimited), after: either(new.Subject, new.Issuer, unlimited)}
	if oldClassical != "" && newClassical != "" {
		old := classical{sign: oldClassical, hash: before.HashAlg, written: before.SignAlg}
		new := classical{sign: newClassical, hash: after.HashAlg, written: after.SignAlg}
		c.signing(at, "KeyConstraints.Issuer", old, new, signs)
		if !checks.equal(signs) {
			c.verifying(at+"KeyConstraints.Subject", old, new, checks)
		}
	}
	c.keyIDs(at+"KeyIds", before.KeyIDs, after.KeyIDs)
}

// components takes the classical and the post-quantum algorithm out of a SignAlg.
func components(signAlg string) (classical, postQuantum string) {
	for part := range strings.SplitSeq(strings.ToLower(signAlg), "+") {
		if strings.HasPrefix(part, "ml-dsa-") {
			postQuantum = part
		} else {
			classical = part
		}
	}
	return classical, postQuantum
}

func signingMode(s *profile.SignData) string {
	if s.SigningMode == "" {
		return "legacy"
	}
	return strings.ToLower(s.SigningMode)
}

// either is the limits of one side; a profile that limits only the other side
// means both.
func either(own, other map[string]profile.KeySize, unlimited profile.KeyLimits) profile.KeyLimits {
	switch {
	case len(own) > 0:
		return own
	case len(other) > 0:
		return other
	default:
		return unlimited
	}
}
