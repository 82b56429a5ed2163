// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// patternKind is a field of patterns.
type patternKind struct {
	name     string
	patterns []string
	valid    func(string) bool
	want     string
}

// patterns checks that there are patterns where the rule is about them; fields
// names the kinds.
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

// isDNSPattern accepts a DNS name whose first label may be "*".
func isDNSPattern(s string) bool {
	s = strings.TrimPrefix(s, "*.")
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !IsDNSLabel(strings.ToLower(label)) {
			return false
		}
	}
	return true
}

// IsDNSLabel is the rule of RFC 1123 that Kubernetes applies to names of
// containers: at most 63 lower-case letters, digits and inner hyphens.
func IsDNSLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func isIPPattern(s string) bool {
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix.Masked() == prefix
	}
	address, err := netip.ParseAddr(s)
	return err == nil && address.Zone() == ""
}

func isURIPattern(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" && u.Opaque == "" && u.Path == "" || len(s) > maxTextLength {
		return false
	}
	_, ok := parseURIPattern(s)
	return ok
}

// isWebPattern accepts a pattern of URLs that a CRL may be fetched from.
func isWebPattern(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && isURIPattern(s)
}

func isEmailPattern(s string) bool {
	local, domain, _ := strings.Cut(s, "@")
	if local == "" || len(local) > 64 || !printable(local) || strings.ContainsAny(local, " \"(),:;<>[\\]") || !isDNSPattern(domain) {
		return false
	}
	_, ok := parseEmailPattern(s)
	return ok
}
