// SPDX-License-Identifier: Apache-2.0

package request

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Skew is how far the clocks of clients may differ from ours.
const Skew = time.Minute

// maxHeader is the size of the largest header of a signed request in bytes, in base64. The library has a map of its members.
const maxHeader = 16 << 10

// algorithms are the algorithms of signatures: RFC 7518, section 3.1.
var algorithms = []jose.SignatureAlgorithm{
	jose.ES256, jose.ES384, jose.ES512, jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
}

var errNoJWS = errors.New("found no JWS in the compact form, with an algorithm such as ES256 or RS256")

// Open returns the claim requestBody of a signed request. key is the key that the caller has
// proven to have, or nil for a caller whose token is bound to no key. The times in the request
// must permit it now. The text of an error has no part of the request.
func Open(token string, key crypto.PublicKey, now time.Time) ([]byte, error) {
	if err := checkHeader(token); err != nil {
		return nil, err
	}
	signed, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return nil, errNoJWS
	}
	payload := signed.UnsafePayloadWithoutVerification()
	if key != nil {
		if payload, err = signed.Verify(key); err != nil {
			return nil, errors.New("the signature is not of the key that the DPoP proof is signed with")
		}
	}
	var claims struct {
		Body      *string  `json:"requestBody"`
		IssuedAt  *float64 `json:"iat"`
		NotBefore *float64 `json:"nbf"`
		Expires   *float64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Body == nil {
		return nil, errors.New("found no claim requestBody with a text")
	}
	seconds := float64(now.Unix())
	skew := Skew.Seconds()
	for _, early := range []*float64{claims.IssuedAt, claims.NotBefore} {
		if early != nil && *early > seconds+skew {
			return nil, fmt.Errorf("iat or nbf is more than %s in the future", Skew)
		}
	}
	if claims.Expires != nil && *claims.Expires < seconds-skew {
		return nil, errors.New("the request has expired")
	}
	return []byte(*claims.Body), nil
}

// checkHeader refuses what the library must not get: a header that is large, and certificates. The library would hash those with
// SHA-1, which GODEBUG=fips140=only answers with a panic, and they are of no use here.
func checkHeader(token string) error {
	text, _, _ := strings.Cut(token, ".")
	if len(text) > maxHeader {
		return fmt.Errorf("found a header of %d bytes in base64, expected at most %d", len(text), maxHeader)
	}
	type certificates struct {
		Chain json.RawMessage `json:"x5c"`
	}
	var header struct {
		certificates
		Key certificates `json:"jwk"`
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(decoded, &header) != nil {
		return errNoJWS
	}
	if header.Chain != nil || header.Key.Chain != nil {
		return errors.New("found certificates (x5c) in the header, expected none")
	}
	return nil
}
