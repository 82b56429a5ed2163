// SPDX-License-Identifier: Apache-2.0

package pattern

import "strings"

// DNS is a pattern of DNS names: one name, or all names with one label before a name.
type DNS struct {
	name     string
	anyLabel bool
}

// ParseDNS returns the pattern in a text. It has to be a DNS name of at most 253 bytes. Its
// first label may be "*".
func ParseDNS(text string) (DNS, bool) {
	d := splitDNS(text)
	if d.name == "" || len(d.name) > 253 {
		return DNS{}, false
	}
	for label := range strings.SplitSeq(d.name, ".") {
		if !IsDNSLabel(label) {
			return DNS{}, false
		}
	}
	return d, true
}

// splitDNS returns the pattern in a text without a check.
func splitDNS(text string) DNS {
	name, anyLabel := strings.CutPrefix(strings.ToLower(text), "*.")
	return DNS{name: name, anyLabel: anyLabel}
}

// Matches reports whether a name matches the pattern. The "*" of a pattern stands for exactly
// one label. That label may be "*" as well: a certificate for the wildcard is valid for no name
// that the pattern does not allow.
func (d DNS) Matches(name string) bool {
	name = strings.ToLower(name)
	if !d.anyLabel {
		return name == d.name
	}
	label, rest, found := strings.Cut(name, ".")
	return found && rest == d.name && (label == "*" || IsDNSLabel(label))
}

// IsDNSLabel reports whether s is a DNS label as Kubernetes allows for names of containers
// (RFC 1123): at most 63 lower-case letters, digits and inner hyphens.
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
