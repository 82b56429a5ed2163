// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"net/netip"
	"net/url"
	"strings"
)

func (v validator) signCertificate(at place, s *SignCertificate) {
	v.enum(at.field("SignAlg"), at, s.SignAlg, certificateSignAlgorithms)
	v.signHash(at, s.SignAlg, s.HashAlg, certificateHashAlgorithms)
	if s.SKIHashAlg != "" || v.present(at.field("SKIHashAlg")) {
		v.enum(at.field("SKIHashAlg"), at, s.SKIHashAlg, skiHashAlgorithms)
	}
	v.validity(at.field("Validity"), at, s.Validity)
	v.keyConstraints(at.field("KeyConstraints"), s.KeyConstraints)
	exact := func(a, b string) bool { return a == b }
	for i, usage := range s.KeyUsage {
		where := at.field("KeyUsage").index(i)
		v.oneOf(where, where, usage, keyUsages, exact)
	}
	for i, usage := range s.ExtendedKeyUsage {
		where := at.field("ExtendedKeyUsage").index(i)
		v.oneOf(where, where, usage, extendedKeyUsages, exact)
	}
	if b := s.BasicConstraints; b != nil && b.PathLenConstraint != nil {
		where := at.field("BasicConstraints").field("PathLenConstraint")
		if *b.PathLenConstraint < 0 || *b.PathLenConstraint > 255 {
			v.add(where, where, "found %d, expected a number of certificates from 0 to 255", *b.PathLenConstraint)
		} else if !b.CA {
			v.add(where, where, "is only allowed where CA is true")
		}
	}
	v.subjectAltNames(at.field("SubjectAltNames"), s.SubjectAltNames)
	for i, key := range s.KeyIDs {
		if where := at.field("KeyIds").index(i); key.ID == AnyKeyID {
			v.add(where.field("Id"), where, "found %q, which stands for every key of the broker, expected the id of the issuer's key: requests of SignCertificate have no field that names one", key.ID)
		}
	}
	v.keyIDs(at.field("KeyIds"), s.KeyIDs)
}

// signHash checks the digest of a signature. Ed25519 and ML-DSA fix their own.
func (v validator) signHash(at place, sign, hash string, allowed []string) {
	where := at.field("HashAlg")
	if !hashesSeparately(sign) {
		if hash != "" {
			v.add(where, at, "found %s, expected no HashAlg, since %s fixes its own digest", excerpt(hash), strings.ToLower(sign))
		}
		return
	}
	v.enum(where, at, hash, allowed)
}

func hashesSeparately(sign string) bool {
	for part := range strings.SplitSeq(strings.ToLower(sign), "+") {
		if part != "ed25519" && !strings.HasPrefix(part, "ml-dsa-") {
			return true
		}
	}
	return false
}

func (v validator) validity(at, around place, validity Validity) {
	if v.failed[at] {
		return
	}
	if !v.present(at) {
		v.required(at, around, "ValidNotBeforeOffset and ValidNotAfterOffset")
		return
	}
	before, ok := v.duration(at.field("ValidNotBeforeOffset"), at, validity.ValidNotBeforeOffset)
	after, also := v.duration(at.field("ValidNotAfterOffset"), at, validity.ValidNotAfterOffset)
	switch where := at.field("ValidNotAfterOffset"); {
	case !ok || !also:
	case after <= 0:
		v.add(where, at, "found %q, expected a time after the signing, or every certificate would be expired", validity.ValidNotAfterOffset)
	case after <= before:
		v.add(where, at, "found %q, expected more than ValidNotBeforeOffset, which is %q", validity.ValidNotAfterOffset, validity.ValidNotBeforeOffset)
	}
}

func (v validator) subjectAltNames(at place, s *SubjectAltNames) {
	if s == nil {
		return
	}
	v.enum(at.field("Rule"), at, s.Rule, subjectAltNameRules)
	kinds := []struct {
		name     string
		patterns []string
		valid    func(string) bool
		want     string
	}{
		{"DNS", s.DNS, isDNSPattern, "a DNS name such as \"app.example.com\" or \"*.example.com\""},
		{"IP", s.IP, isIPPattern, "an address or a range such as \"10.0.0.0/8\""},
		{"URI", s.URI, isURIPattern, "a URI such as \"spiffe://example.com/ns/*\", where \"*\" is the host's first label, a segment of the path or its end"},
		{"Email", s.Email, isEmailPattern, "an address such as \"ops@example.com\" or \"*@example.com\""},
	}
	patterns := 0
	for _, kind := range kinds {
		where := at.field(kind.name)
		if len(kind.patterns) > 0 && s.Rule != "" && !strings.EqualFold(s.Rule, "patterns") {
			v.add(where, at, "is only allowed where Rule is \"patterns\", found Rule %s", excerpt(s.Rule))
		}
		for i, pattern := range kind.patterns {
			patterns++
			if !kind.valid(pattern) {
				v.add(where.index(i), where, "found %s, expected %s", excerpt(pattern), kind.want)
			}
		}
	}
	if strings.EqualFold(s.Rule, "patterns") && patterns == 0 {
		v.add(at, at, "has Rule \"patterns\" and no pattern, expected at least one in DNS, IP, URI or Email")
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

func isEmailPattern(s string) bool {
	local, domain, _ := strings.Cut(s, "@")
	if local == "" || len(local) > 64 || !printable(local) || strings.ContainsAny(local, " \"(),:;<>[\\]") || !isDNSPattern(domain) {
		return false
	}
	_, ok := parseEmailPattern(s)
	return ok
}
