// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"encoding/asn1"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// encoding is the string type that an attribute has in a certificate.
type encoding uint8

const (
	// directory is PrintableString if the characters allow it, and otherwise UTF8String.
	// These are the two types of DirectoryString that RFC 5280, section 4.1.2.4, recommends.
	directory encoding = iota
	// printable is always PrintableString.
	printable
	// ia5 is always IA5String, which is ASCII.
	ia5
)

// attribute describes a type of attribute, such as commonName, and its values.
type attribute struct {
	id       asn1.ObjectIdentifier
	encoding encoding
	// length is the number of characters that the value has to have, 0 for any number.
	length int
}

// attributes are the types that have names. They are in RFC 4519 and in RFC 5280, appendix
// A.1. Other tools print the short forms S, T, E and EMAIL.
var attributes = byName([]named{
	{"CN commonName", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 3}}},
	{"SN surname", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 4}}},
	{"serialNumber", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 5}, encoding: printable}},
	{"C countryName", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 6}, encoding: printable, length: 2}},
	{"L localityName", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 7}}},
	{"ST S stateOrProvinceName", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 8}}},
	{"STREET streetAddress", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 9}}},
	{"O organizationName", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 10}}},
	{"OU organizationalUnitName", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 11}}},
	{"T title", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 12}}},
	{"description", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 13}}},
	{"businessCategory", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 15}}},
	{"postalCode", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 17}}},
	{"name", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 41}}},
	{"GN givenName", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 42}}},
	{"initials", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 43}}},
	{"generationQualifier", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 44}}},
	{"dnQualifier", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 46}, encoding: printable}},
	{"pseudonym", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 65}}},
	{"organizationIdentifier", attribute{id: asn1.ObjectIdentifier{2, 5, 4, 97}}},
	{"UID userId", attribute{id: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}}},
	{"DC domainComponent", attribute{id: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}, encoding: ia5}},
	{"E EMAIL emailAddress", attribute{id: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, encoding: ia5}},
})

// named is an attribute with its names, separated by spaces.
type named struct {
	names string
	attribute
}

// byName returns attributes by their names in lower case and by their object identifiers.
func byName(list []named) map[string]attribute {
	index := map[string]attribute{}
	for _, a := range list {
		for name := range strings.FieldsSeq(a.names) {
			index[strings.ToLower(name)] = a.attribute
		}
		index[a.id.String()] = a.attribute
	}
	return index
}

// isType reports whether a text can be the type of an attribute: a name, or the digits and
// dots of an object identifier, of at most 64 bytes.
func isType(text string) bool {
	if text == "" || len(text) > 64 {
		return false
	}
	for i, c := range []byte(text) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && (i == 0 || c != '-' && c != '.') {
			return false
		}
	}
	return true
}

// parseType returns the type of an attribute by its name or object identifier.
func parseType(text string) (attribute, error) {
	if a, ok := attributes[strings.ToLower(text)]; ok {
		return a, nil
	}
	if text == "" {
		return attribute{}, errors.New("an attribute without a type, expected one such as \"CN=\"")
	}
	if !isType(text) {
		return attribute{}, errors.New("an attribute type that is neither a name nor an object identifier, expected one such as \"CN=\"")
	}
	if text[0] < '0' || text[0] > '9' {
		return attribute{}, fmt.Errorf("unknown attribute type %q, expected CN, O, OU, C, ST, L or another of RFC 4519, or a dotted object identifier", text)
	}
	id, ok := parseObjectIdentifier(text)
	if !ok {
		return attribute{}, fmt.Errorf("attribute type %q is not an object identifier, expected one such as 2.5.4.3", text)
	}
	return attribute{id: id}, nil
}

// parseObjectIdentifier reads the dotted form of an object identifier (RFC 4512, section 1.4).
// Numbers have no leading zeros. The first is at most 2, and the second at most 39 if the
// first is 0 or 1. Numbers of more than 31 bits are refused, because readers of certificates
// refuse them.
func parseObjectIdentifier(text string) (asn1.ObjectIdentifier, bool) {
	var id asn1.ObjectIdentifier
	for part := range strings.SplitSeq(text, ".") {
		number, err := strconv.ParseUint(part, 10, 31)
		if err != nil || len(part) > 1 && part[0] == '0' {
			return nil, false
		}
		id = append(id, int(number))
	}
	if len(id) < 2 || id[0] > 2 || id[0] < 2 && id[1] > 39 || id[1] > math.MaxInt32-80 {
		return nil, false
	}
	return id, true
}
