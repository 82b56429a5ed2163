// SPDX-License-Identifier: Apache-2.0

package pattern

import "strings"

// DNS is a DNS name in lower case, or all names of one more label.
type DNS struct {
	name     string
	anyLabel bool
}

// ParseDNS reads a DNS name of at most 253 bytes, whose first label may be "*".
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

// splitDNS takes a leading "*" off a name, whatever the name is.
func splitDNS(text string) DNS {
	name, anyLabel := strings.CutPrefix(strings.ToLower(text), "*.")
	return DNS{name: name, anyLabel: anyLabel}
}

// Matches reports whether a name is that of the pattern. The "*" of the pattern stands
// for exactly one label, a "*" label of the name (a wildcard) included: such a certificate
// is good for nothing that the pattern does not allow.
func (d DNS) Matches(name string) bool {
	name = strings.ToLower(name)
	if !d.anyLabel {
		return name == d.name
	}
	label, rest, found := strings.Cut(name, ".")
	return found && rest == d.name && (label == "*" || IsDNSLabel(label))
}

// IsDNSLabel reports whether a text is a label as RFC 1123 has it and Kubernetes demands
// it of names of containers: at most 63 lower-case letters, digits and inner hyphens.
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
