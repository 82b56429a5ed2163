// SPDX-License-Identifier: Apache-2.0

package downgrade

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/extensions"
)

// names compares the rules for alternative names. policy is the old rule, compiled. A new pattern
// counts as broader unless a single old pattern covers it.
func (c *comparison) names(before, after *extensions.SubjectAltNames, policy *extensions.NamePolicy) {
	const at = "API.SignCertificate.SubjectAltNames."
	if before != nil && before.Required && (after == nil || !after.Required) {
		c.add(at+"Required", "true", "false", "a request without alternative names is certified, it was refused")
	}
	breadth := []string{"deny", "patterns", "copy"}
	old, new := nameRule(before), nameRule(after)
	switch {
	case slices.Index(breadth, new) > slices.Index(breadth, old):
		c.add(at+"Rule", old, new, "the rule for alternative names is %q, it was %q", new, old)
		return
	case old == "patterns" && new == "deny":
		c.add(at+"Rule", old, new, "the subject may have any common name and mail address, they had to match a pattern")
		return
	case new != "patterns" || old != "patterns":
		return
	}
	kind := func(field string, before, after []string, covered func(string) bool) {
		c.patterns(at+field, "alternative names", before, after, covered)
	}
	// A "*" at the beginning of a name counts as a label "*", which only a pattern with the same
	// "*" allows.
	kind("DNS", before.DNS, after.DNS, policy.AllowsDNS)
	kind("IP", before.IP, after.IP, func(pattern string) bool {
		return slices.ContainsFunc(before.IP, func(network string) bool { return contains(prefix(network), prefix(pattern)) })
	})
	kind("URI", before.URI, after.URI, policy.CoversURI)
	kind("Email", before.Email, after.Email, policy.AllowsEmail)
}

// patterns finds the new patterns that no single old pattern covers.
func (c *comparison) patterns(field, what string, before, after []string, covered func(string) bool) {
	var added []string
	for _, pattern := range after {
		if !slices.Contains(before, pattern) && !covered(pattern) {
			added = append(added, strconv.Quote(pattern))
		}
	}
	if len(added) > 0 {
		slices.Sort(added)
		c.add(field, short(before), short(after), "%s may also match %s", what, short(added))
	}
}

// points compares the rules for CRL distribution points. policy is the old rule,
// compiled.
func (c *comparison) points(before, after *extensions.CRLDistributionPoints, policy *extensions.PointPolicy) {
	const at = "API.SignCertificate.CRLDistributionPoints."
	breadth := []string{"deny", "patterns", "any"}
	old, new := pointRule(before), pointRule(after)
	if slices.Index(breadth, new) > slices.Index(breadth, old) {
		c.add(at+"Rule", old, new, "the rule for CRL distribution points is %q, it was %q", new, old)
	} else if old == "patterns" && new == "patterns" {
		c.patterns(at+"URI", "CRL distribution points", before.URI, after.URI, policy.CoversURI)
	}
}

func pointRule(p *extensions.CRLDistributionPoints) string {
	if p == nil {
		return "any"
	}
	return strings.ToLower(p.Rule)
}

func nameRule(n *extensions.SubjectAltNames) string {
	if n == nil {
		return "deny"
	}
	return strings.ToLower(n.Rule)
}

// prefix reads an address or network of a valid profile.
func prefix(text string) netip.Prefix {
	if network, err := netip.ParsePrefix(text); err == nil {
		return network
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		panic("downgrade: comparison of a profile that was not validated: " + err.Error())
	}
	return netip.PrefixFrom(address, address.BitLen())
}

// contains reports whether a pattern allows all addresses that another one allows. Only a network
// of IPv4-mapped addresses allows such addresses, see [extensions.NamePolicy.AllowsIP].
func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr()) && (isMapped(outer) || !isMapped(inner))
}

// isMapped reports whether all addresses of a network are IPv4-mapped.
func isMapped(network netip.Prefix) bool { return network.Addr().Is4In6() && network.Bits() >= 96 }
