// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/asn1"
	"fmt"
	mathrand "math/rand/v2"
	"net/netip"
	"slices"
	"strings"
)

// testName is a name of a certificate or of a constraint.
type testName struct {
	// kind is DNS, mail, URI, IP or directory; subject, CN or emailAddress in a
	// subject.
	kind string
	text string
	der  []byte      // of an IP
	name rdnSequence // for a directory name, and for names in a subject
}

func (n testName) String() string { return fmt.Sprintf("%s %q", n.kind, n.text) }

func (n testName) inSubject() bool {
	return slices.Contains([]string{"subject", "CN", "emailAddress"}, n.kind)
}

// general is the name as a GeneralName.
func (n testName) general() asn1.RawValue {
	value := asn1.RawValue{Class: asn1.ClassContextSpecific, Bytes: []byte(n.text)}
	switch n.kind {
	case "mail":
		value.Tag = 1
	case "DNS":
		value.Tag = 2
	case "URI":
		value.Tag = 6
	case "IP":
		value.Tag, value.Bytes = 7, n.der
	case "directory":
		der, err := asn1.Marshal(n.name)
		if err != nil {
			panic(err)
		}
		value.Tag, value.IsCompound, value.Bytes = 4, true, der
	default:
		panic(n.kind)
	}
	return value
}

const tagUniversalString = 28

// rdnSequence is a distinguished name whose strings have any type.
type (
	rdnSequence  []componentSET
	componentSET []attribute
	attribute    struct {
		ID    asn1.ObjectIdentifier
		Value asn1.RawValue
	}
)

func hasKind(names []testName, kind string) bool {
	return containsName(names, func(n testName) bool { return n.kind == kind })
}

func containsName(names []testName, is func(testName) bool) bool {
	return slices.ContainsFunc(names, is)
}

// beginsWith compares without case and without the types of strings.
func beginsWith(name, base rdnSequence) bool {
	if len(base) > len(name) {
		return false
	}
	for i, component := range base {
		if len(component) != len(name[i]) {
			return false
		}
		for _, want := range component {
			if !slices.ContainsFunc(name[i], func(a attribute) bool {
				return a.ID.Equal(want.ID) && strings.EqualFold(folded(a.Value), folded(want.Value))
			}) {
				return false
			}
		}
	}
	return true
}

func folded(value asn1.RawValue) string {
	text := string(value.Bytes)
	if width := map[int]int{asn1.TagT61String: 1, asn1.TagBMPString: 2, tagUniversalString: 4}[value.Tag]; width > 0 {
		text = ""
		for bytes := range slices.Chunk(value.Bytes, width) {
			character := rune(0)
			for _, b := range bytes {
				character = character<<8 | rune(b)
			}
			text += string(character)
		}
	}
	return strings.Join(strings.Fields(text), " ")
}

// randomNames makes names and constraints from few words, so that many of them match.
type randomNames struct{ *mathrand.Rand }

func (r randomNames) oneOf(texts ...string) string { return texts[r.IntN(len(texts))] }

func (r randomNames) chance(percent int) bool { return r.IntN(100) < percent }

func (r randomNames) host() string {
	host := r.oneOf("example.com", "example.com", "example.org", "shop.example.com", "a.shop.example.com", "xexample.com", "com", "example")
	if r.chance(40) {
		host = r.oneOf("a", "b", "shop", "x-y", "a_b") + "." + host
	}
	if r.chance(10) {
		host = strings.ToUpper(host)
	}
	return host
}

func (r randomNames) local() string { return r.oneOf("ops", "Ops", "ops", "x.y", "x+y") }

// constraints are of one kind or of several.
func (r randomNames) constraints() (permitted, excluded []testName) {
	for len(permitted)+len(excluded) == 0 {
		for _, kind := range []string{"DNS", "mail", "URI", "IP", "directory"} {
			if !r.chance(35) {
				continue
			}
			for range r.IntN(3) {
				permitted = append(permitted, r.constraint(kind))
			}
			for range r.IntN(3) {
				excluded = append(excluded, r.constraint(kind))
			}
		}
	}
	return permitted, excluded
}

func (r randomNames) constraint(kind string) testName {
	name := testName{kind: kind, text: r.host()}
	if r.chance(25) {
		name.text = "." + name.text
	}
	switch {
	case kind == "IP":
		address := r.address()
		prefix, err := address.Prefix(r.IntN(address.BitLen() + 1))
		if err != nil {
			panic(err)
		}
		mask := make([]byte, address.BitLen()/8)
		for i := range prefix.Bits() {
			mask[i/8] |= 0x80 >> (i % 8)
		}
		return testName{kind: kind, text: prefix.String(), der: append(prefix.Addr().AsSlice(), mask...)}
	case kind == "directory":
		return r.directory(kind, 1+r.IntN(2))
	case kind == "mail" && r.chance(30):
		name.text = r.local() + "@" + r.host()
	case r.chance(4):
		name.text = ""
	}
	return name
}

// names are the names of one certificate.
func (r randomNames) names() (names []testName) {
	if r.chance(60) {
		names = append(names, r.directory("subject", 1+r.IntN(3)))
	}
	if r.chance(40) {
		names = append(names, r.commonName())
	}
	if r.chance(15) {
		names = append(names, r.commonName())
	}
	if r.chance(25) {
		tag := asn1.TagIA5String
		if r.chance(10) {
			tag = asn1.TagUTF8String
		}
		text := r.oneOf(r.local()+"@"+r.host(), r.local()+"@"+r.host(), "ops")
		names = append(names, attributeName("emailAddress", asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, tag, text))
	}
	for range r.IntN(3) {
		names = append(names, r.alternative())
	}
	return names
}

func (r randomNames) alternative() testName {
	switch kind := r.oneOf("DNS", "mail", "URI", "IP", "directory"); kind {
	case "DNS":
		return testName{kind: kind, text: r.oneOf("", "", "", "*.") + r.host()}
	case "mail":
		return testName{kind: kind, text: r.local() + "@" + r.host()}
	case "URI":
		return testName{kind: kind, text: r.uri()}
	case "IP":
		address := r.address()
		return testName{kind: kind, text: address.String(), der: address.AsSlice()}
	default:
		return r.directory(kind, 1+r.IntN(3))
	}
}

func (r randomNames) uri() string {
	host := r.host()
	switch r.IntN(12) {
	case 0:
		return r.oneOf("urn:example:a", "spiffe:///path", "https://10.0.0.1/", "https://[2001:db8::1]/", "https://10.0.0.1:443/")
	case 1:
		return "https://" + r.oneOf("user", "user:secret", "example.com", "example.com:x") + "@" + host + "/"
	case 2:
		return "https://" + host + "/a:b"
	case 3:
		return "https://" + host + r.oneOf("?query", "#part", "?a:b", ":443", ":443/a")
	default:
		return r.oneOf("https", "spiffe", "ldap") + "://" + host + r.oneOf("", "/", "/a/b", "/@x")
	}
}

func (r randomNames) address() netip.Addr {
	return netip.MustParseAddr(r.oneOf("10.0.0.1", "10.0.128.1", "192.0.2.1", "192.0.2.200", "2001:db8::1", "2001:db8:1::1", "::ffff:10.0.0.1"))
}

func (r randomNames) commonName() testName {
	text := r.oneOf(r.host(), r.host(), r.host(), "*."+r.host(), "Jane Doe", "db", "10.0.0.1", "a..example.com", "-a.example.org", "a.example.org-", "ä.example.org", "a.example.org.",
		strings.Repeat("x", 64)+".example.org", "a.example.org\x00", "a.example\x00.org")
	return attributeName("CN", asn1.ObjectIdentifier{2, 5, 4, 3}, r.stringType(), text)
}

func (r randomNames) stringType() int {
	return []int{asn1.TagUTF8String, asn1.TagUTF8String, asn1.TagT61String, asn1.TagBMPString, tagUniversalString}[r.IntN(5)]
}

// directory returns a directory name that begins with a country, an organization and so on, in one of a few spellings.
func (r randomNames) directory(kind string, components int) testName {
	name := testName{kind: kind}
	for i, id := range [][]int{{2, 5, 4, 6}, {2, 5, 4, 10}, {2, 5, 4, 11}}[:components] {
		text := [][]string{{"DE", "DE", "US"}, {"Example", "EXAMPLE", "Example  GmbH", " example GmbH ", "Größe", "GRÖßE", "größe"}, {"Shop", "shop", "Bank"}}[i]
		component := componentSET{{id, encoded(r.stringType(), r.oneOf(text...))}}
		if i == 2 && r.chance(40) {
			component = append(component, attribute{asn1.ObjectIdentifier{2, 5, 4, 7}, encoded(asn1.TagUTF8String, r.oneOf("Ulm", "ulm", "Bonn"))})
		}
		name.name = append(name.name, component)
		for _, a := range component {
			name.text += fmt.Sprintf("%v=%d %q,", a.ID, a.Value.Tag, folded(a.Value))
		}
	}
	return name
}

func attributeName(kind string, id asn1.ObjectIdentifier, tag int, text string) testName {
	return testName{kind: kind, text: text, name: rdnSequence{{{id, encoded(tag, text)}}}}
}

// encoded is a string of a type.
func encoded(tag int, text string) asn1.RawValue {
	value := asn1.RawValue{Tag: tag}
	for _, c := range text {
		switch tag {
		case asn1.TagT61String:
			value.Bytes = append(value.Bytes, byte(c))
		case asn1.TagBMPString:
			value.Bytes = append(value.Bytes, byte(c>>8), byte(c))
		case tagUniversalString:
			value.Bytes = append(value.Bytes, 0, byte(c>>16), byte(c>>8), byte(c))
		default:
			value.Bytes = append(value.Bytes, string(c)...)
		}
	}
	return value
}
