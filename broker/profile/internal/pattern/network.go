// SPDX-License-Identifier: Apache-2.0

package pattern

import "net/netip"

// ParseNetwork reads an address, which is the network of itself, or a network without
// bits beyond its prefix. An address with a zone is no pattern.
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
