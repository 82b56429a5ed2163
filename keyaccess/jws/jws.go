// SPDX-License-Identifier: Apache-2.0

package jws

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/go-jose/go-jose/v4/json"
)

// maxHeader is the size of the largest header in bytes, in base64: reading it remembers the names of its members.
const maxHeader = 16 << 10

// Signed is a JWS in the compact form (RFC 7515, section 7.1).
type Signed struct {
	Header Header
	// Payload is what was signed. Nobody has checked the signature before Verify has returned nil.
	Payload []byte
	// input is what the signature is of (RFC 7515, section 5.1).
	input     string
	signature []byte
}

// Header has the members of the protected header that are used. The rest is ignored, as RFC 7515, section 4, demands: in particular, nothing
// is fetched from jku and x5u.
type Header struct {
	Algorithm string          `json:"alg"`
	Type      string          `json:"typ"`
	KeyID     string          `json:"kid"`
	Key       json.RawMessage `json:"jwk"`
}

// present reports whether a member exists, whatever its value.
type present bool

func (p *present) UnmarshalJSON([]byte) error {
	*p = true
	return nil
}

// ErrSignature is the error of Verify. Like those of Open, it continues a sentence that begins with what the JWS is, such as "the token".
var ErrSignature = errors.New("has a wrong signature")

var (
	errParts    = errors.New("is no JWS in the compact form")
	errHeader   = errors.New("has a header that cannot be read")
	errCritical = errors.New("has a header that this service does not know and that is critical")
)

var encoding = base64.RawURLEncoding.Strict()

// Open takes a JWS apart.
func Open(text string) (*Signed, error) {
	parts := strings.SplitN(text, ".", 4) // a text may be all points
	if len(parts) != 3 || parts[2] == "" {
		return nil, errParts
	}
	if len(parts[0]) > maxHeader {
		return nil, errHeader
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		// The decoder passes over the ends of lines.
		if decoded[i], err = encoding.DecodeString(part); err != nil || strings.IndexByte(part, '\n') >= 0 || strings.IndexByte(part, '\r') >= 0 {
			return nil, errParts
		}
	}
	var raw struct {
		Header
		Critical     present `json:"crit"`
		Unencoded    present `json:"b64"`
		Certificates present `json:"x5c"`
	}
	if err := json.Unmarshal(decoded[0], &raw); err != nil {
		return nil, errHeader
	}
	if raw.Critical || raw.Unencoded {
		return nil, errCritical
	}
	// Anybody who sends certificates expects that they are looked at.
	if raw.Certificates {
		return nil, errHeader
	}
	return &Signed{Header: raw.Header, Payload: decoded[1], input: text[:len(parts[0])+1+len(parts[1])], signature: decoded[2]}, nil
}
