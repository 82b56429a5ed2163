// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Email is a mailbox, or all mailboxes of a domain. The domain is a DNS pattern.
type Email struct {
	local    string
	anyLocal bool
	domain   DNS
}

// ParseEmail reads a mail address. Its local part is "*" for any, or at most 64 bytes of
// printable characters that need no quotes. A "*" in a longer local part would be read as a
// wildcard and act as a letter, so it is refused.
func ParseEmail(text string) (Email, bool) {
	local, domain, _ := strings.Cut(text, "@")
	if local == "" || len(local) > 64 || !printable(local) || strings.ContainsAny(local, " \"(),:;<>[\\]") {
		return Email{}, false
	}
	anyLocal := local == "*"
	if !anyLocal && strings.Contains(local, "*") {
		return Email{}, false
	}
	name, ok := ParseDNS(domain)
	return Email{local: local, anyLocal: anyLocal, domain: name}, ok
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Matches reports whether an address is of the pattern. It compares local parts exactly,
// since only the domain of an address is without case (RFC 5280, section 7.5).
func (e Email) Matches(address string) bool {
	at := strings.LastIndexByte(address, '@')
	if at <= 0 || strings.Contains(address[:at], "@") {
		return false
	}
	return (e.anyLocal || address[:at] == e.local) && e.domain.Matches(address[at+1:])
}
