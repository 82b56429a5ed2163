// SPDX-License-Identifier: Apache-2.0

package profile

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
