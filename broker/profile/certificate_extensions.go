// SPDX-License-Identifier: Apache-2.0

package profile

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

func compileNames(s *SubjectAltNames) *NamePolicy {
	p := &NamePolicy{required: s != nil && s.Required}
	switch {
	case s == nil || strings.EqualFold(s.Rule, "deny"):
	case strings.EqualFold(s.Rule, "copy"):
		p.rule = NamesCopied
	case strings.EqualFold(s.Rule, "patterns"):
		p.rule = NamesMatched
		for _, text := range s.DNS {
			p.dns = append(p.dns, validated(pattern.ParseDNS(text)))
		}
		for _, text := range s.IP {
			p.ip = append(p.ip, validated(pattern.ParseNetwork(text)))
		}
		for _, text := range s.URI {
			p.uri = append(p.uri, validated(pattern.ParseURI(text)))
		}
		for _, text := range s.Email {
			p.email = append(p.email, validated(pattern.ParseEmail(text)))
		}
	default:
		panic("profile: compile of a profile that was not validated: " + s.Rule)
	}
	return p
}

func (v validator) subjectAltNames(at yamlfile.Place, s *SubjectAltNames) {
	if s == nil {
		return
	}
	v.enum(at.Field("Rule"), at, s.Rule, subjectAltNameRules)
	if where := at.Field("Required"); s.Required && strings.EqualFold(s.Rule, "deny") {
		v.Add(where, at, "is true while Rule is \"deny\", which leaves all names out, expected Rule \"copy\" or \"patterns\"")
	}
	v.patterns(at, s.Rule, "DNS, IP, URI or Email", []patternKind{
		{"DNS", s.DNS, is(pattern.ParseDNS), "a DNS name such as \"app.example.com\" or \"*.example.com\""},
		{"IP", s.IP, is(pattern.ParseNetwork), "an address or a range such as \"10.0.0.0/8\""},
		{"URI", s.URI, is(pattern.ParseURI), "a URI such as \"spiffe://example.com/ns/*\", where \"*\" is the host's first label, a segment of the path or its end"},
		{"Email", s.Email, is(pattern.ParseEmail), "an address such as \"ops@example.com\" or \"*@example.com\""},
	})
}

// patternKind is a field that lists patterns. want is the end of the message for a pattern
// that is not valid.
type patternKind struct {
	name     string
	patterns []string
	valid    func(string) bool
	want     string
}

// patterns checks patterns. There has to be at least one if the rule is "patterns", and none
// otherwise. fields names the kinds in the message.
func (v validator) patterns(at yamlfile.Place, rule, fields string, kinds []patternKind) {
	patterns := 0
	for _, kind := range kinds {
		where := at.Field(kind.name)
		if len(kind.patterns) > 0 && rule != "" && !strings.EqualFold(rule, "patterns") {
			v.Add(where, at, "is only allowed where Rule is \"patterns\", found Rule %s", yamlfile.Excerpt(rule))
		}
		for i, pattern := range kind.patterns {
			patterns++
			if !kind.valid(pattern) {
				v.Add(where.Index(i), where, "found %s, expected %s", yamlfile.Excerpt(pattern), kind.want)
			}
		}
	}
	if strings.EqualFold(rule, "patterns") && patterns == 0 {
		v.Add(at, at, "has Rule \"patterns\" and no pattern, expected at least one in %s", fields)
	}
}

// is returns a function that reports whether a text is a valid pattern.
func is[P any](parse func(string) (P, bool)) func(string) bool {
	return func(text string) bool {
		_, ok := parse(text)
		return ok
	}
}

// CRLDistributionPoints says which CRL distribution points a request may ask for.
type CRLDistributionPoints struct {
	// Rule is "any", "deny" or "patterns". If the field CRLDistributionPoints is absent, the
	// rule is "any".
	Rule string   `yaml:"Rule"`
	URI  []string `yaml:"URI,omitempty"`
}

func (v validator) distributionPoints(at yamlfile.Place, c *CRLDistributionPoints) {
	if c == nil {
		return
	}
	v.enum(at.Field("Rule"), at, c.Rule, distributionPointRules)
	v.patterns(at, c.Rule, "URI", []patternKind{
		{"URI", c.URI, is(pattern.ParseWeb), "a URL of http or https such as \"http://crl.example.com/*\", where \"*\" is the host's first label, a segment of the path or its end"},
	})
}

var distributionPointRules = []string{"any", "deny", "patterns"}

// PointRule says which CRL distribution points a request may ask for.
type PointRule uint8

const (
	// PointsAny allows all distribution points.
	PointsAny PointRule = iota
	// PointsDenied allows no distribution points.
	PointsDenied
	// PointsMatched allows distribution points that match a pattern of the profile.
	PointsMatched
)

// PointPolicy is the rule for CRL distribution points (RFC 5280, section
// 4.2.1.13). It never changes and is safe for concurrent use.
type PointPolicy struct {
	rule PointRule
	uri  []pattern.URI
}

// Rule returns which distribution points a request may ask for.
func (p *PointPolicy) Rule() PointRule { return p.rule }

// MatchesURI reports whether a URL matches a pattern, as in [NamePolicy.AllowsURI].
func (p *PointPolicy) MatchesURI(url string) bool {
	return slices.ContainsFunc(p.uri, func(u pattern.URI) bool { return u.Matches(url) })
}

// CoversURI is [NamePolicy.CoversURI] for distribution points.
func (p *PointPolicy) CoversURI(other string) bool {
	return slices.ContainsFunc(p.uri, func(u pattern.URI) bool { return u.Covers(other) })
}

func compilePoints(c *CRLDistributionPoints) *PointPolicy {
	p := &PointPolicy{}
	switch {
	case c == nil || strings.EqualFold(c.Rule, "any"):
	case strings.EqualFold(c.Rule, "deny"):
		p.rule = PointsDenied
	case strings.EqualFold(c.Rule, "patterns"):
		p.rule = PointsMatched
		for _, text := range c.URI {
			p.uri = append(p.uri, validated(pattern.ParseWeb(text)))
		}
	default:
		panic("profile: compile of a profile that was not validated: " + c.Rule)
	}
	return p
}
