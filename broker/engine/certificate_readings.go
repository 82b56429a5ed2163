// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/asn1"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// tagDirectory is the tag of a distinguished name in GeneralName.
const tagDirectory = 4

// smtpUTF8Mailbox is the beginning of an otherName that is a mail address (RFC 9598).
// Constraints of mail addresses apply to it.
var smtpUTF8Mailbox = []byte("\x06\x08\x2b\x06\x01\x05\x05\x07\x08\x09")

// reading is a name of a certificate as verifiers read it. If verifiers read a name in two
// ways, there are two readings of it, and both have to be allowed.
type reading struct {
	tag  int
	what string // describes the name in messages
	// unreadable says why constraints cannot be applied to the name, else it is empty. The
	// issuer then must not have constraints of this kind (RFC 5280, section 4.2.1.10).
	unreadable string
	// isWithin reports whether everything that the name stands for is in a subtree. touches
	// reports whether a part of it may be.
	isWithin, touches func(subtree) bool
}

// readingsOf returns all names of a certificate: its alternative names, its subject as a
// directory name, and mail addresses in the subject. If no alternative name is a DNS name,
// common names that are host names are among them, because OpenSSL reads them so. problem
// says which name cannot be read.
func readingsOf(subject, alternative []byte) (names []reading, problem string) {
	var general []asn1.RawValue
	if alternative != nil {
		if rest, err := asn1.Unmarshal(alternative, &general); err != nil || len(rest) > 0 {
			return nil, "the alternative names cannot be read"
		}
	}
	hasDNS := false
	for _, name := range general {
		hasDNS = hasDNS || name.Tag == tagDNS
		names = append(names, readGeneralName(name)...)
	}
	if string(subject) == emptyName {
		return names, ""
	}
	components, ok := readName(subject)
	if !ok {
		return nil, "the subject cannot be read"
	}
	names = append(names, directoryReading("the subject", components))
	for _, value := range attributesOf(components, oidEmailAddress) {
		if value.Class != asn1.ClassUniversal || value.Tag != asn1.TagIA5String {
			return nil, "an emailAddress of the subject is not an IA5String"
		}
		names = append(names, mailReading(string(value.Bytes)))
	}
	if hasDNS {
		return names, ""
	}
	for _, value := range attributesOf(components, oidCommonName) {
		text, ok := textOf(value)
		// OpenSSL ignores NUL at the end of a name.
		text = strings.TrimRight(text, "\x00")
		if !ok || strings.ContainsRune(text, 0) {
			return nil, "a common name of the subject cannot be read"
		}
		if host, wildcard := strings.CutPrefix(text, "*."); hasHostSyntax(host) && (wildcard || strings.Contains(host, ".")) {
			names = append(names, dnsReading(text))
		}
	}
	return names, ""
}

// readGeneralName returns the readings of an alternative name that checkName has accepted.
func readGeneralName(name asn1.RawValue) []reading {
	switch name.Tag {
	case tagDNS:
		return []reading{dnsReading(string(name.Bytes))}
	case tagEmail:
		return []reading{mailReading(string(name.Bytes))}
	case tagURI:
		return uriReadings(string(name.Bytes))
	case tagIP:
		return ipReadings(name.Bytes)
	case tagDirectory:
		if components, ok := readName(name.Bytes); ok {
			return []reading{directoryReading("a directory name", components)}
		}
		return []reading{{tag: tagDirectory, unreadable: "a directory name cannot be read"}}
	}
	unreadable := func(tag int) reading {
		return reading{tag: tag, unreadable: fmt.Sprintf("names of the kind %q are restricted by constraints that this broker cannot check, expected no such names", nameKinds[tag])}
	}
	if name.Tag == 0 && bytes.HasPrefix(name.Bytes, smtpUTF8Mailbox) {
		return []reading{unreadable(name.Tag), unreadable(tagEmail)}
	}
	return []reading{unreadable(name.Tag)}
}

// dnsReading returns the reading of a DNS name. The name is within a constraint if it ends
// with the labels of the constraint. A wildcard touches a constraint that is one of its
// hosts. OpenSSL does not check that, and RFC 5280 does not say.
func dnsReading(name string) reading {
	within := func(tree subtree) bool {
		base := string(tree.value)
		if len(name) < len(base) || !equalFoldASCII(name[len(name)-len(base):], base) {
			return false
		}
		return base == "" || len(name) == len(base) || base[0] == '.' || name[len(name)-len(base)-1] == '.'
	}
	return reading{tag: tagDNS, what: "the DNS name " + quote(name, 128), isWithin: within, touches: func(tree subtree) bool {
		parent, wildcard := strings.CutPrefix(name, "*.")
		label, rest, _ := strings.Cut(string(tree.value), ".")
		return within(tree) || wildcard && label != "" && equalFoldASCII(rest, parent)
	}}
}

// mailReading returns the reading of a mail address. The address is within a constraint that
// is the same address, its host, or "." and a domain above its host. Upper and lower case do
// not matter in the host.
func mailReading(address string) reading {
	r := reading{tag: tagEmail, what: "the mail address " + quote(address, 128)}
	at := strings.LastIndexByte(address, '@')
	if at < 0 || strings.ContainsRune(address, 0) {
		r.unreadable = r.what + " cannot be read, so the constraints of mail addresses cannot be applied"
		return r
	}
	r.isWithin = func(tree subtree) bool {
		base := string(tree.value)
		i := strings.LastIndexByte(base, '@')
		switch {
		case i < 0 && strings.HasPrefix(base, "."):
			return isBelow(address, base)
		case i > 0 && base[:i] != address[:at]:
			return false
		}
		return equalFoldASCII(base[i+1:], address[at+1:])
	}
	r.touches = orEmpty(r.isWithin)
	return r
}

// uriReadings returns the readings of a URI. The URI is within a constraint that is its host,
// or "." and a domain above its host. RFC 5280 uses the host by RFC 3986, and refuses IP
// addresses and URIs without a host. OpenSSL uses the text before the first colon, or else
// before the first slash.
func uriReadings(text string) []reading {
	r := reading{tag: tagURI, what: "the URI " + quote(text, 128)}
	var host string
	if u, err := url.Parse(text); err == nil {
		host = strings.TrimSuffix(u.Hostname(), ".")
	}
	_, rest, _ := strings.Cut(text, "://")
	asRead, _, colon := strings.Cut(rest, ":")
	if !colon {
		asRead, _, _ = strings.Cut(rest, "/")
	}
	if _, err := netip.ParseAddr(host); err == nil || !isHostName(host) || asRead == "" {
		r.unreadable = r.what + " has no host name, so the constraints of URIs cannot be applied"
		return []reading{r}
	}
	var readings []reading
	for _, host := range []string{host, asRead} {
		r.isWithin = func(tree subtree) bool {
			base := string(tree.value)
			if strings.HasPrefix(base, ".") {
				return isBelow(host, base)
			}
			return equalFoldASCII(host, base)
		}
		r.touches = orEmpty(r.isWithin)
		readings = append(readings, r)
		if host == asRead {
			break
		}
	}
	return readings
}

// isBelow reports whether a name ends with a domain and has text before it. The domain begins
// with a dot.
func isBelow(name, domain string) bool {
	return len(name) > len(domain) && equalFoldASCII(name[len(name)-len(domain):], domain)
}

// orEmpty makes an empty constraint exclude every name, as issuers mean it. Neither RFC 5280
// nor OpenSSL gives it a meaning.
func orEmpty(within func(subtree) bool) func(subtree) bool {
	return func(tree subtree) bool { return len(tree.value) == 0 || within(tree) }
}

// ipReadings returns the readings of an IP address. Verifiers such as Go's crypto/x509 accept a
// certificate with an IPv4-mapped IPv6 address for the IPv4 address.
func ipReadings(address []byte) []reading {
	readings := []reading{ipReading(address)}
	if ip, _ := netip.AddrFromSlice(address); ip.Is4In6() {
		readings = append(readings, ipReading(ip.Unmap().AsSlice()))
	}
	return readings
}

// ipReading returns the reading of an IP address. The address is within a constraint that is
// its network: an address and a mask of the same length.
func ipReading(address []byte) reading {
	ip, _ := netip.AddrFromSlice(address)
	within := func(tree subtree) bool {
		if len(tree.value) != 2*len(address) {
			return false
		}
		base, mask := tree.value[:len(address)], tree.value[len(address):]
		for i := range address {
			if (address[i]^base[i])&mask[i] != 0 {
				return false
			}
		}
		return true
	}
	return reading{tag: tagIP, what: "the IP address " + ip.String(), isWithin: within, touches: within}
}

// directoryReading returns the reading of a directory name. The name is within a constraint
// if it begins with the constraint. OpenSSL's comparison decides whether the name is
// permitted. The comparison of RFC 5280 decides whether it is excluded, because more names
// are equal with it.
func directoryReading(what string, name []nameComponentSET) reading {
	return reading{
		tag: tagDirectory, what: what,
		isWithin: func(tree subtree) bool { return nameComparison(asOpenSSL).isWithin(name, tree.directory) },
		touches:  func(tree subtree) bool { return nameComparison(asRFC5280).isWithin(name, tree.directory) },
	}
}

// equalFoldASCII reports whether two texts are equal except for the case of ASCII letters.
func equalFoldASCII(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		x, y := a[i], b[i]
		if x != y && (x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z') {
			return false
		}
	}
	return true
}
