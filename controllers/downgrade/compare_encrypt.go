// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

var _ = compares("EncryptData", (*comparison).cipher)

func (c *comparison) cipher(old, changed side) {
	before, after := old.EncryptData, changed.EncryptData
	const at = "API.EncryptData."
	if !strings.EqualFold(before.EncryptAlg, after.EncryptAlg) {
		c.add(at+"EncryptAlg", before.EncryptAlg, after.EncryptAlg, "found %q instead of %q; the two can't be compared", after.EncryptAlg, before.EncryptAlg)
	}
	c.shorter(at+"KeySize", "the key", before.KeySize, after.KeySize)
	strategy, now := nonceStrategy(before), nonceStrategy(after)
	if strategy == "random" && now != strategy {
		c.add(at+"NonceStrategy", strategy, now, "the caller makes the nonce and may use one twice, which gives away what is encrypted; the broker made it")
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
