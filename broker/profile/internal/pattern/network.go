// SPDX-License-Identifier: Apache-2.0

package pattern

import "net/netip"

// ParseNetwork returns the network in a text, which is an address or a network without bits
// beyond its prefix. For an address it returns the network that has only this address. It
// reports false for an address with a zone.
func ParseNetwork(text string) (netip.Prefix, bool) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return prefix, prefix.Masked() == prefix
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(address, address.BitLen()), true
}
