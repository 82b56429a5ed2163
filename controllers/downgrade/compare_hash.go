// SPDX-License-Identifier: Apache-2.0

package downgrade

import "github.com/crypto-broker/crypto-broker-operator/broker/profile"

var _ = compares("HashData", (*comparison).hash)

func (c *comparison) hash(before, after side) {
	c.digest("API.HashData.HashAlg", before.HashData.HashAlg, after.HashData.HashAlg)
}

// digest compares two digest algorithms by their strength.
func (c *comparison) digest(field, before, after string) {
	old, new := profile.DigestStrength(before), profile.DigestStrength(after)
	if new.Bits < old.Bits {
		c.add(field, before, after, "%q has a strength of %s, %q had %s", after, bits(new), before, bits(old))
	}
}
