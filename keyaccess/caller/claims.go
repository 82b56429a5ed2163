// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"
)

// token is an access token.
type token struct {
	*signed
	claims claims
	all    map[string]any
}

// claims are the claims that decide whether a token is accepted (RFC 7519, section 4.1, RFC 9068, section 2.2, and RFC 7800).
type claims struct {
	Issuer          string          `json:"iss"`
	Subject         string          `json:"sub"`
	Audience        audiences       `json:"aud"`
	Expires         *seconds        `json:"exp"`
	NotBefore       *seconds        `json:"nbf"`
	IssuedAt        *seconds        `json:"iat"`
	ClientID        string          `json:"client_id"`
	AuthorizedParty string          `json:"azp"`
	Confirmation    json.RawMessage `json:"cnf"`
}

// audiences is a text or a list of texts.
type audiences []string

func (a *audiences) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audiences{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*a = list
	return nil
}

// seconds is a time in seconds since 1970, with a fraction (NumericDate).
type seconds float64

func (s *seconds) UnmarshalJSON(text []byte) error {
	var number float64
	if err := json.Unmarshal(text, &number); err != nil {
		return err
	}
	if string(text) == "null" || number < 0 || number > 253402300799 { // the year 9999
		return errors.New("expected seconds since 1970")
	}
	*s = seconds(number)
	return nil
}

func (s seconds) time() time.Time {
	whole, fraction := math.Modf(float64(s))
	return time.Unix(int64(whole), int64(fraction*1e9))
}

// openToken reads a token without checking anything that is in it.
func openToken(text string) (*token, *Error) {
	s, err := open(text)
	if err != nil {
		return nil, invalidToken("the token " + err.Error())
	}
	t := &token{signed: s}
	if json.Unmarshal(s.payload, &t.all) != nil || t.all == nil || json.Unmarshal(s.payload, &t.claims) != nil {
		return nil, invalidToken("the token has claims that cannot be read")
	}
	return t, nil
}

// checkToken checks everything of a token but what it is bound to.
func (v *Verifier) checkToken(ctx context.Context, t *token, from *keySource) *Error {
	if !slices.Contains(from.Algorithms, t.header.Algorithm) {
		return invalidToken("the token has an algorithm that this service does not accept")
	}
	if t.header.Key != nil {
		return invalidToken("the token brings a key of its own")
	}
	// A token of another kind with the same issuer and audience, such as one for a logout, is no access token.
	if kind := strings.TrimPrefix(strings.ToLower(t.header.Type), "application/"); kind != "at+jwt" &&
		(from.RequireTokenType || kind != "jwt" && kind != "") {
		return invalidToken("the token has a type that is not the type of access tokens")
	}
	key, refused := from.key(ctx, t.header.KeyID, t.header.Algorithm)
	if refused != nil {
		return refused
	}
	if id := signatureOf(key, t.text); !v.signatures.has(id) {
		if err := t.verify(key, from.Algorithms); err != nil {
			return invalidToken("the token " + err.Error())
		}
		v.signatures.add(id)
	}
	return t.claims.check(from.Audiences, v.config.Now(), v.config.Skew)
}

// check checks the claims of a token whose signature is right.
func (c *claims) check(audiences []string, now time.Time, skew time.Duration) *Error {
	switch {
	case c.Subject == "":
		return invalidToken("the token has no subject")
	case !slices.ContainsFunc(c.Audience, func(name string) bool { return slices.Contains(audiences, name) }):
		return invalidToken("the token is for another audience")
	case c.Expires == nil:
		return invalidToken("the token never expires")
	case !now.Before(c.Expires.time().Add(skew)):
		return invalidToken("the token has expired")
	case c.NotBefore != nil && c.NotBefore.time().After(now.Add(skew)):
		return invalidToken("the token is not valid yet")
	case c.IssuedAt != nil && c.IssuedAt.time().After(now.Add(skew)):
		return invalidToken("the token was issued in the future")
	}
	return nil
}

// client returns the program that the caller uses.
func (c *claims) client() string {
	if c.ClientID != "" {
		return c.ClientID
	}
	return c.AuthorizedParty
}

// boundTo returns the thumbprint of the key that the token is bound to (RFC 9449, section 6.1), or nothing.
// Confirmation by other means is refused, since a token with it would otherwise be accepted from anybody.
func (c *claims) boundTo() (string, *Error) {
	if c.Confirmation == nil {
		return "", nil
	}
	var members map[string]string
	if json.Unmarshal(c.Confirmation, &members) != nil || len(members) != 1 {
		return "", invalidToken("the token is bound by means that this service cannot check")
	}
	thumbprint := members["jkt"]
	if hash, err := base64.RawURLEncoding.Strict().DecodeString(thumbprint); err != nil || len(hash) != 32 {
		return "", invalidToken("the token is bound by means that this service cannot check")
	}
	return thumbprint, nil
}
