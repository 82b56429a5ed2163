// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
)

// Email is a pattern of mail addresses: one mailbox, or all mailboxes of a domain. The domain is
// a pattern of DNS names.
type Email struct {
	local    string
	anyLocal bool
	domain   DNS
}

// ParseEmail returns the pattern in a text. Its local part is "*" for any local part, or at most
// 64 bytes of printable characters that need no quotes. It reports false if "*" is one of
// several characters of the local part, because people would read it as a wildcard.
func ParseEmail(text string) (Email, bool) {
	local, domain, _ := strings.Cut(text, "@")
	if local == "" || len(local) > 64 || !yamlfile.Printable(local) || strings.ContainsAny(local, " \"(),:;<>[\\]") {
		return Email{}, false
	}
	anyLocal := local == "*"
	if !anyLocal && strings.Contains(local, "*") {
		return Email{}, false
	}
	name, ok := ParseDNS(domain)
	return Email{local: local, anyLocal: anyLocal, domain: name}, ok
}

// Matches reports whether an address matches the pattern. The case of the local part matters,
// the case of the domain does not (RFC 5280, section 7.5).
func (e Email) Matches(address string) bool {
	at := strings.LastIndexByte(address, '@')
	if at <= 0 || strings.Contains(address[:at], "@") {
		return false
	}
	return (e.anyLocal || address[:at] == e.local) && e.domain.Matches(address[at+1:])
}
