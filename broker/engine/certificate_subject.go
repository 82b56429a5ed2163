// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/asn1"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/extensions"
)

// checkSubject checks the names in a subject if the profile has patterns for names. Verifiers
// may read a common name as a host name, some of them even if there are alternative names.
// They read an emailAddress as a mail address. field is the name of the field that has the
// subject.
func checkSubject(policy *extensions.NamePolicy, field string, subject []byte) error {
	if policy.Rule() != extensions.NamesMatched {
		return nil
	}
	name, ok := readName(subject)
	if !ok {
		return inputError(field, "has a subject that cannot be read, expected a distinguished name of X.501")
	}
	for _, value := range attributesOf(name, oidCommonName) {
		if err := checkCommonName(policy, field, value); err != nil {
			return err
		}
	}
	for _, value := range attributesOf(name, oidEmailAddress) {
		text, ok := textOf(value)
		switch {
		case !ok:
			return inputError(field, "has an emailAddress of the ASN.1 type %d, which cannot be read, expected an IA5String", value.Tag)
		case !isVisibleASCII(text) || !policy.AllowsEmail(text):
			return inputError(field, "has the emailAddress %s, which no pattern of the profile allows", quote(text, 256))
		}
	}
	return nil
}

func checkCommonName(policy *extensions.NamePolicy, field string, value asn1.RawValue) error {
	text, ok := textOf(value)
	if !ok {
		return inputError(field, "has a common name of the ASN.1 type %d, which cannot be read, expected a string such as UTF8String", value.Tag)
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return inputError(field, "has the common name %s with a control character, expected none", quote(text, 256))
	}
	var kind string
	var allowed bool
	trimmed := strings.TrimSpace(text)
	address, err := netip.ParseAddr(strings.Trim(trimmed, "[]"))
	switch {
	case err == nil:
		kind, allowed = "an IP address", text == trimmed && policy.AllowsIP(address)
	case strings.Contains(trimmed, "@"):
		kind, allowed = "a mail address", isVisibleASCII(text) && policy.AllowsEmail(text)
	case looksLikeHost(trimmed):
		kind, allowed = "a DNS name", policy.AllowsDNS(text)
	default:
		return nil
	}
	if !allowed {
		return inputError(field, "has the common name %s, which verifiers read as %s and no pattern of the profile allows", quote(text, 256), kind)
	}
	return nil
}

// looksLikeHost reports whether a verifier may read a text as a host name. One label is
// enough, because OpenSSL reads the common name "db" as the host db. Characters beyond ASCII
// may be in an internationalized name. "*" may be anywhere, because OpenSSL reads it as a part
// of a label.
func looksLikeHost(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		letter := r|0x20 >= 'a' && r|0x20 <= 'z'
		digit := r >= '0' && r <= '9'
		return !letter && !digit && !strings.ContainsRune("-_.*", r) && r < utf8.RuneSelf
	})
}
