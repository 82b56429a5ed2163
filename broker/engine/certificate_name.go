// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/asn1"
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	oidCommonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidEmailAddress = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}
)

// Tags of string types in X.680 for which package asn1 has no constants.
const (
	tagVisibleString   = 26
	tagUniversalString = 28
)

// nameAttribute is one attribute of a distinguished name with its encoded value. The type of
// the standard library leaves out values of types that it does not know.
type nameAttribute struct {
	ID    asn1.ObjectIdentifier
	Value asn1.RawValue
}

// nameComponentSET is a relative distinguished name. Package asn1 reads it as a SET because
// the name of the type ends with SET.
type nameComponentSET []nameAttribute

// readName returns the components of a distinguished name. It reports false if der is not
// one.
func readName(der []byte) ([]nameComponentSET, bool) {
	var name []nameComponentSET
	rest, err := asn1.Unmarshal(der, &name)
	return name, err == nil && len(rest) == 0
}

// attributesOf returns the values of all attributes of the type id.
func attributesOf(name []nameComponentSET, id asn1.ObjectIdentifier) (values []asn1.RawValue) {
	for _, component := range name {
		for _, attribute := range component {
			if attribute.ID.Equal(id) {
				values = append(values, attribute.Value)
			}
		}
	}
	return values
}

// textOf returns the text of a string of any ASN.1 type. It reports false if the value is not
// a string. As OpenSSL does, it reads a TeletexString as Latin-1.
func textOf(value asn1.RawValue) (string, bool) {
	if value.Class != asn1.ClassUniversal || value.IsCompound {
		return "", false
	}
	width := 1
	switch value.Tag {
	case asn1.TagUTF8String:
		return string(value.Bytes), utf8.Valid(value.Bytes)
	case asn1.TagPrintableString, asn1.TagNumericString, asn1.TagT61String, asn1.TagIA5String, tagVisibleString:
	case asn1.TagBMPString:
		width = 2
	case tagUniversalString:
		width = 4
	default:
		return "", false
	}
	if len(value.Bytes)%width != 0 {
		return "", false
	}
	var text strings.Builder
	for character := range slices.Chunk(value.Bytes, width) {
		var padded [4]byte
		copy(padded[4-width:], character)
		code := binary.BigEndian.Uint32(padded[:])
		if code > unicode.MaxRune || !utf8.ValidRune(rune(code)) {
			return "", false
		}
		text.WriteRune(rune(code))
	}
	return text.String(), true
}

// nameComparison is a way to compare distinguished names. It returns the same text for values
// that count as equal.
type nameComparison func(value asn1.RawValue) string

// isWithin reports whether a distinguished name begins with another one.
func (canonical nameComparison) isWithin(name, base []nameComponentSET) bool {
	if len(base) > len(name) {
		return false
	}
	for i, want := range base {
		if !slices.Equal(canonical.component(name[i]), canonical.component(want)) {
			return false
		}
	}
	return true
}

// component returns the attributes of a relative distinguished name in a fixed order.
func (canonical nameComparison) component(component nameComponentSET) []string {
	attributes := make([]string, len(component))
	for i, attribute := range component {
		attributes[i] = attribute.ID.String() + "=" + canonical(attribute.Value)
	}
	slices.Sort(attributes)
	return attributes
}

// asOpenSSL compares as OpenSSL does. It ignores the type of a string, the case of ASCII
// letters, spaces at both ends, and repeated spaces.
func asOpenSSL(value asn1.RawValue) string {
	text, ok := textOf(value)
	if !ok || value.Tag == asn1.TagNumericString {
		return string(value.FullBytes)
	}
	isSpace := func(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }
	text = strings.Join(strings.FieldsFunc(text, isSpace), " ")
	return "text " + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, text)
}

// asRFC5280 compares as RFC 5280, section 7.1, says. It ignores the case of all letters and
// all kinds of spaces as well. Names that are equal for asOpenSSL are equal for asRFC5280.
func asRFC5280(value asn1.RawValue) string {
	text, ok := textOf(value)
	if !ok {
		return string(value.FullBytes)
	}
	return "text " + strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, strings.Join(strings.Fields(text), " "))
}
