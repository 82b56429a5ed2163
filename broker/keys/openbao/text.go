// SPDX-License-Identifier: Apache-2.0

package openbao

import "errors"

// text is a JSON string of ASCII characters, which can be cleared.
type text []byte

var errNoText = errors.New("openbao: found a value that is not text in ASCII")

// UnmarshalJSON implements json.Unmarshaler. Its argument is valid JSON.
func (t *text) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if len(data) < 2 || data[0] != '"' {
		return errNoText
	}
	out := make([]byte, 0, len(data))
	for rest := data[1 : len(data)-1]; len(rest) > 0; rest = rest[1:] {
		c := rest[0]
		if c == '\\' {
			rest = rest[1:]
			switch c = rest[0]; c {
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			case '"', '\\', '/':
			default:
				clear(out)
				return errNoText
			}
		}
		out = append(out, c)
	}
	*t = out
	return nil
}
