// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/pattern"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// CRLDistributionPoints says which CRL distribution points a request may ask for.
type CRLDistributionPoints struct {
	// Rule is "any", "deny" or "patterns". If the field CRLDistributionPoints is absent, the
	// rule is "any".
	Rule string   `yaml:"Rule"`
	URI  []string `yaml:"URI,omitempty"`
}

// Check adds what is wrong with the rule to a report.
func (c *CRLDistributionPoints) Check(r *yamlfile.Report, at yamlfile.Place) {
	if c == nil {
		return
	}
	r.Enum(at.Field("Rule"), at, c.Rule, distributionPointRules)
	checkPatterns(r, at, c.Rule, "URI", []patternKind{
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

// Policy returns the policy of a rule without problems. The policy of nil allows all points.
func (c *CRLDistributionPoints) Policy() *PointPolicy {
	p := &PointPolicy{}
	switch {
	case c == nil || strings.EqualFold(c.Rule, "any"):
	case strings.EqualFold(c.Rule, "deny"):
		p.rule = PointsDenied
	case strings.EqualFold(c.Rule, "patterns"):
		p.rule = PointsMatched
		for _, text := range c.URI {
			p.uri = append(p.uri, checked(pattern.ParseWeb(text)))
		}
	default:
		panic("extensions: policy of a rule that was not checked: " + c.Rule)
	}
	return p
}
