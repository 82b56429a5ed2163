// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// signed is a JWS in the compact form (RFC 7515, section 7.1) whose signature nobody has checked yet.
type signed struct {
	text    string
	header  header
	payload []byte
}

// header has the members of the protected header that are used. The rest is ignored, as RFC 7515, section 4, demands: in particular, nothing
// is fetched from jku and x5u.
type header struct {
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

// These errors continue a sentence that begins with "the token" or "the proof".
var (
	errParts     = errors.New("is no JWS in the compact form")
	errHeader    = errors.New("has a header that cannot be read")
	errCritical  = errors.New("has a header that this service does not know and that is critical")
	errSignature = errors.New("has a wrong signature")
)

// open takes a JWS apart. Its error is one of the above.
func open(text string) (*signed, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || parts[2] == "" {
		return nil, errParts
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil || strings.ContainsAny(part, "\r\n") {
			return nil, errParts
		}
	}
	s := &signed{text: text, payload: decoded[1]}
	var raw struct {
		header
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
	// The library would parse a chain of certificates, which nothing here needs.
	if raw.Certificates {
		return nil, errHeader
	}
	s.header = raw.header
	return s, nil
}

// verify checks the signature with a key. The algorithm of the header must be one of those allowed, and the key must fit it.
func (s *signed) verify(key publicKey, allowed []string) error {
	if !slices.Contains(allowed, s.header.Algorithm) || !key.fits(s.header.Algorithm) {
		return errSignature
	}
	parsed, err := jose.ParseSignedCompact(s.text, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(s.header.Algorithm)})
	if err != nil {
		return errSignature
	}
	if _, err := parsed.Verify(key.public); err != nil {
		return errSignature
	}
	return nil
}
