// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/pattern"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// SubjectAltNames says what happens to the alternative names of a request, and with the rule
// "patterns" which names its subject may have.
type SubjectAltNames struct {
	// Rule is "deny", "copy" or "patterns". If the field SubjectAltNames is absent, the rule
	// is "deny".
	Rule string `yaml:"Rule"`
	// Required refuses requests without alternative names.
	Required bool `yaml:"Required,omitempty"`

	DNS   []string `yaml:"DNS,omitempty"`
	IP    []string `yaml:"IP,omitempty"`
	URI   []string `yaml:"URI,omitempty"`
	Email []string `yaml:"Email,omitempty"`
}

var subjectAltNameRules = []string{"deny", "copy", "patterns"}

// NameRule says what happens to the alternative names of a request.
type NameRule uint8

const (
	// NamesDenied leaves them out of the certificate.
	NamesDenied NameRule = iota
	// NamesCopied puts all of them into the certificate.
	NamesCopied
	// NamesMatched puts all of them into the certificate if each matches a pattern that the
	// profile lists for its kind. The same holds for names in the subject that verifiers
	// read as such a name.
	NamesMatched
)

// NamePolicy is the rule for subject alternative names (RFC 5280, section
// 4.2.1.6). It never changes and is safe for concurrent use.
type NamePolicy struct {
	rule     NameRule
	required bool
	dns      []pattern.DNS
	ip       []netip.Prefix
	uri      []pattern.URI
	email    []pattern.Email
}

// Rule returns what happens to the names of a request.
func (p *NamePolicy) Rule() NameRule { return p.rule }

// Required reports whether a request has to ask for a name.
func (p *NamePolicy) Required() bool { return p.required }

// AllowsDNS reports whether a DNS name matches a pattern. "*" at the beginning of a pattern
// stands for exactly one label. That label may be "*" as well: a certificate for the
// wildcard is valid for no name that the pattern does not allow.
func (p *NamePolicy) AllowsDNS(name string) bool {
	return slices.ContainsFunc(p.dns, func(d pattern.DNS) bool { return d.Matches(name) })
}

// AllowsIP reports whether an address is in one of the networks. An IPv4-mapped IPv6 address
// is in no IPv4 network, and in an IPv6 network only if all its addresses are mapped: verifiers
// may read it as the IPv4 address.
func (p *NamePolicy) AllowsIP(address netip.Addr) bool {
	return slices.ContainsFunc(p.ip, func(n netip.Prefix) bool {
		return n.Contains(address) && (!address.Is4In6() || n.Addr().Is4In6() && n.Bits() >= 96)
	})
}

// AllowsURI reports whether a URI matches a pattern. "*" in a pattern stands for the first label
// of the host, a segment of the path, or the end of the path.
func (p *NamePolicy) AllowsURI(uri string) bool {
	return slices.ContainsFunc(p.uri, func(u pattern.URI) bool { return u.Matches(uri) })
}

// CoversURI reports whether a pattern allows every URI that another pattern allows.
func (p *NamePolicy) CoversURI(other string) bool {
	return slices.ContainsFunc(p.uri, func(u pattern.URI) bool { return u.Covers(other) })
}

// AllowsEmail reports whether a mail address matches a pattern. The local part has to be
// equal, unless the pattern has "*" there. The domain has to match as a DNS name.
func (p *NamePolicy) AllowsEmail(address string) bool {
	return slices.ContainsFunc(p.email, func(e pattern.Email) bool { return e.Matches(address) })
}

// Policy returns the policy of a rule without problems. The policy of nil denies all names.
func (s *SubjectAltNames) Policy() *NamePolicy {
	p := &NamePolicy{required: s != nil && s.Required}
	switch {
	case s == nil || strings.EqualFold(s.Rule, "deny"):
	case strings.EqualFold(s.Rule, "copy"):
		p.rule = NamesCopied
	case strings.EqualFold(s.Rule, "patterns"):
		p.rule = NamesMatched
		for _, text := range s.DNS {
			p.dns = append(p.dns, checked(pattern.ParseDNS(text)))
		}
		for _, text := range s.IP {
			p.ip = append(p.ip, checked(pattern.ParseNetwork(text)))
		}
		for _, text := range s.URI {
			p.uri = append(p.uri, checked(pattern.ParseURI(text)))
		}
		for _, text := range s.Email {
			p.email = append(p.email, checked(pattern.ParseEmail(text)))
		}
	default:
		panic("extensions: policy of a rule that was not checked: " + s.Rule)
	}
	return p
}

// Check adds what is wrong with the rule to a report.
func (s *SubjectAltNames) Check(r *yamlfile.Report, at yamlfile.Place) {
	if s == nil {
		return
	}
	r.Enum(at.Field("Rule"), at, s.Rule, subjectAltNameRules)
	if where := at.Field("Required"); s.Required && strings.EqualFold(s.Rule, "deny") {
		r.Add(where, at, "is true while Rule is \"deny\", which leaves all names out, expected Rule \"copy\" or \"patterns\"")
	}
	checkPatterns(r, at, s.Rule, "DNS, IP, URI or Email", []patternKind{
		{"DNS", s.DNS, is(pattern.ParseDNS), "a DNS name such as \"app.example.com\" or \"*.example.com\""},
		{"IP", s.IP, is(pattern.ParseNetwork), "an address or a range such as \"10.0.0.0/8\""},
		{"URI", s.URI, is(pattern.ParseURI), "a URI such as \"spiffe://example.com/ns/*\", where \"*\" is the host's first label, a segment of the path or its end"},
		{"Email", s.Email, is(pattern.ParseEmail), "an address such as \"ops@example.com\" or \"*@example.com\""},
	})
}
