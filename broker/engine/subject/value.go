// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// encode returns the encoded value.
func (a attribute) encode(name, text string) (asn1.RawValue, error) {
	if err := a.check(name, text); err != nil {
		return asn1.RawValue{}, err
	}
	tag := asn1.TagUTF8String
	switch {
	case a.encoding == ia5:
		tag = asn1.TagIA5String
	case isPrintableString(text):
		tag = asn1.TagPrintableString
	}
	return asn1.RawValue{Tag: tag, Bytes: []byte(text)}, nil
}

func (a attribute) check(name, text string) error {
	switch {
	case text == "":
		return fmt.Errorf("%s has no value", name)
	case !utf8.ValidString(text):
		return fmt.Errorf("the value of %s is not UTF-8", name)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("the value of %s has a control character", name)
	case a.encoding == printable && !isPrintableString(text):
		return fmt.Errorf("the value of %s has a character that the attribute cannot have, expected only letters, digits, spaces and '()+,-./:=? of ASCII", name)
	case a.encoding == ia5 && strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }):
		return fmt.Errorf("the value of %s has a character that the attribute cannot have, expected only characters of ASCII", name)
	case a.length != 0 && len(text) != a.length:
		return fmt.Errorf("the value of %s has %d characters, expected %d", name, len(text), a.length)
	}
	return nil
}

// isPrintableString reports whether a text has only characters of the ASN.1 type
// PrintableString (X.680, section 41.4).
func isPrintableString(text string) bool {
	for _, c := range []byte(text) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && !strings.ContainsRune(" '()+,-./:=?", rune(c)) {
			return false
		}
	}
	return true
}

// decodeHex returns a value that is written as "#" and the hexadecimal digits of its DER (RFC
// 4514, section 2.4). The value has to be one of the string types of a name, and has to be
// allowed as text as well. Its bytes stay as they are.
func (a attribute) decodeHex(name, digits string) (asn1.RawValue, error) {
	der, err := hex.DecodeString(digits)
	if err != nil {
		return asn1.RawValue{}, fmt.Errorf("the value of %s begins with \"#\", expected pairs of hexadecimal digits after it, or \"\\#\" for the character", name)
	}
	const want = "expected the DER of one UTF8String, PrintableString or IA5String"
	var value asn1.RawValue
	rest, err := asn1.Unmarshal(der, &value)
	if err != nil || len(rest) > 0 || value.Class != asn1.ClassUniversal || value.IsCompound {
		return asn1.RawValue{}, fmt.Errorf("the value of %s is in hexadecimal, %s", name, want)
	}
	fits := false
	text := string(value.Bytes)
	switch value.Tag {
	case asn1.TagPrintableString:
		fits = a.encoding != ia5 && isPrintableString(text)
	case asn1.TagUTF8String:
		fits = a.encoding == directory
	case asn1.TagIA5String:
		fits = a.encoding == ia5 || attributes[a.id.String()].id == nil
		fits = fits && !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
	}
	if !fits {
		return asn1.RawValue{}, fmt.Errorf("the value of %s is in hexadecimal and of another type than the attribute's, %s as the attribute needs it", name, want)
	}
	return asn1.RawValue{FullBytes: der}, a.check(name, text)
}
