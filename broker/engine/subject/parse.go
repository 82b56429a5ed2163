// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"bytes"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// attributeTypeAndValue and relativeDistinguishedNameSET are types of X.501. With RawValue,
// encoding/asn1 keeps the type of each value. It sorts a slice whose type ends with SET, as
// DER demands.
type (
	attributeTypeAndValue struct {
		Type  asn1.ObjectIdentifier
		Value asn1.RawValue
	}
	relativeDistinguishedNameSET []attributeTypeAndValue
)

// Parse returns the DER of a distinguished name that is written as text. It is a Name of RFC
// 5280, section 4.1.2.4. Errors are one sentence that says what to write instead, without the
// name of the field, which the caller adds. They may quote types of attributes, but not values: a
// client may have put a secret here by mistake.
func Parse(text string) ([]byte, error) {
	p := parser{rest: text}
	var name []relativeDistinguishedNameSET
	for {
		component, err := p.next()
		if err != nil {
			return nil, err
		}
		if component != nil {
			name = append(name, component)
		}
		if p.rest == "" {
			break
		}
		p.rest = p.rest[1:] // the comma
	}
	if len(name) == 0 {
		return nil, errors.New("names nothing, expected attributes such as \"CN=api.example.com,O=Example\"")
	}
	return asn1.Marshal(name)
}

type parser struct {
	rest string
	// component is the number of the current component, from 1.
	component int
}

// next returns the attributes up to a comma or the end, or nil if there are none.
func (p *parser) next() (relativeDistinguishedNameSET, error) {
	p.component++
	p.skipBlanks()
	if p.rest == "" || p.rest[0] == ',' {
		return nil, nil
	}
	var set relativeDistinguishedNameSET
	for {
		a, err := p.attribute()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(set, func(other attributeTypeAndValue) bool { return sameAttribute(a, other) }) {
			return nil, fmt.Errorf("one component has the attribute %s twice with the same value", a.Type)
		}
		set = append(set, a)
		if p.rest == "" || p.rest[0] == ',' {
			return set, nil
		}
		p.rest = p.rest[1:] // the plus sign
	}
}

func sameAttribute(a, b attributeTypeAndValue) bool {
	return a.Type.Equal(b.Type) && bytes.Equal(a.Value.Bytes, b.Value.Bytes) && bytes.Equal(a.Value.FullBytes, b.Value.FullBytes)
}

// attribute reads "type=value". It stops before a comma, before a plus sign that separates
// attributes, or at the end.
func (p *parser) attribute() (attributeTypeAndValue, error) {
	name, value, found := strings.Cut(p.rest, "=")
	if !found || strings.Contains(name, ",") {
		return attributeTypeAndValue{}, fmt.Errorf("component %d has no \"=\", expected an attribute such as \"CN=api.example.com\"; a comma inside a value is written \"\\,\"", p.component)
	}
	name = strings.TrimSpace(name)
	kind, err := parseType(name)
	if err != nil {
		return attributeTypeAndValue{}, err
	}
	p.rest = value
	p.skipBlanks()
	encoded, err := p.value(name, kind)
	return attributeTypeAndValue{Type: kind.id, Value: encoded}, err
}

func (p *parser) value(name string, kind attribute) (asn1.RawValue, error) {
	if digits, ok := strings.CutPrefix(p.rest, "#"); ok {
		end := strings.IndexAny(digits, ",+")
		if end < 0 {
			end = len(digits)
		}
		p.rest = digits[end:]
		return kind.decodeHex(name, strings.TrimRight(digits[:end], blank))
	}
	text, err := p.text(name)
	if err != nil {
		return asn1.RawValue{}, err
	}
	return kind.encode(name, text)
}

// text reads a value with its escapes. It removes blanks at the end that are not escaped.
func (p *parser) text(name string) (string, error) {
	var text []byte
	kept := 0 // the length without unescaped blanks at the end
	for p.rest != "" {
		switch c := p.rest[0]; {
		case c == ',', c == '+' && p.attributeFollows():
			return string(text[:kept]), nil
		case c == '\\':
			unescaped, err := p.escape(name)
			if err != nil {
				return "", err
			}
			text = append(text, unescaped)
			kept = len(text)
			continue
		case c == '"':
			return "", fmt.Errorf("the value of %s has an unescaped quotation mark, expected \"\\\"\"; values are not quoted, a comma inside one is written \"\\,\"", name)
		case c == ';':
			return "", fmt.Errorf("the value of %s has an unescaped semicolon, expected a comma between attributes, or \"\\;\" for the character", name)
		case strings.IndexByte(blank, c) >= 0:
			text = append(text, c)
		default:
			text = append(text, c)
			kept = len(text)
		}
		p.rest = p.rest[1:]
	}
	return string(text[:kept]), nil
}

// attributeFollows reports whether the current plus sign separates attributes.
func (p *parser) attributeFollows() bool {
	name, _, found := strings.Cut(p.rest[1:], "=")
	return found && isType(strings.TrimSpace(name))
}

// escape reads a backslash and a special character, or a backslash and the two hexadecimal
// digits of a byte.
func (p *parser) escape(name string) (byte, error) {
	if len(p.rest) >= 2 && strings.IndexByte(" \"#+,;<=>\\", p.rest[1]) >= 0 {
		c := p.rest[1]
		p.rest = p.rest[2:]
		return c, nil
	}
	if len(p.rest) >= 3 {
		if b, err := hex.DecodeString(p.rest[1:3]); err == nil {
			p.rest = p.rest[3:]
			return b[0], nil
		}
	}
	return 0, fmt.Errorf("the value of %s has a backslash that escapes nothing, expected a special character or two hexadecimal digits after it, or \"\\\\\" for the character", name)
}

// blank are the characters that have no meaning around names and values.
const blank = " \t\r\n"

func (p *parser) skipBlanks() { p.rest = strings.TrimLeft(p.rest, blank) }
