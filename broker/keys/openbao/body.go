// SPDX-License-Identifier: Apache-2.0

package openbao

import (
	"encoding/base64"
	"strconv"
)

// body is a JSON object of a request. encoding/json keeps its buffers, so body is made without
// it, and its owner can clear the only copy.
type body []byte

// newBody returns an empty object with room for secrets of this many bytes.
func newBody(secrets int) body {
	const others = 512
	return append(make(body, 0, base64.StdEncoding.EncodedLen(secrets)+others), '{')
}

func (b *body) name(name string) {
	if len(*b) > 1 {
		*b = append(*b, ',')
	}
	*b = strconv.AppendQuote(*b, name)
	*b = append(*b, ':')
}

// base64 adds a field with bytes.
func (b *body) base64(name string, value []byte) {
	b.name(name)
	*b = append(*b, '"')
	*b = base64.StdEncoding.AppendEncode(*b, value)
	*b = append(*b, '"')
}

// ciphertext adds a field with a ciphertext or signature in the form of the Transit engine.
func (b *body) ciphertext(name string, version int, value []byte) {
	b.name(name)
	*b = append(*b, `"vault:v`...)
	*b = strconv.AppendInt(*b, int64(version), 10)
	*b = append(*b, ':')
	*b = base64.StdEncoding.AppendEncode(*b, value)
	*b = append(*b, '"')
}

// text adds a field with a word of letters, digits and hyphens.
func (b *body) text(name, value string) {
	b.name(name)
	*b = strconv.AppendQuote(*b, value)
}

// number adds a field with a number.
func (b *body) number(name string, value int) {
	b.name(name)
	*b = strconv.AppendInt(*b, int64(value), 10)
}

// flag adds a field that is true.
func (b *body) flag(name string) {
	b.name(name)
	*b = append(*b, "true"...)
}

// end closes the object and returns it.
func (b *body) end() []byte {
	*b = append(*b, '}')
	return *b
}
