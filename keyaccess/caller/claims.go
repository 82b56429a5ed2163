// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"cmp"
	"context"
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/jws"
)

// token is an access token.
type token struct {
	*jws.Signed
	text   string
	claims claims
	all    map[string]any
}

// claims are the claims that decide whether a token is accepted (RFC 7519, section 4.1, RFC 9068, section 2.2, and RFC 7800).
type claims struct {
	issuer, subject, clientID, authorizedParty string
	audience                                   []string
	expires, notBefore, issuedAt               time.Time // zero if they are missing
	// confirmation is the claim cnf. confirmed reports whether the token has the claim, with any value.
	confirmation any
	confirmed    bool
}

// claimReader has the claims of a token by their names. wrong says that one of those which were asked for has another type than it should have.
type claimReader struct {
	all   map[string]any
	wrong bool
}

// read returns the claims. It reports whether all of them have the right types.
func (r *claimReader) read() (claims, bool) {
	c := claims{
		issuer: r.text("iss"), subject: r.text("sub"), clientID: r.text("client_id"), authorizedParty: r.text("azp"),
		audience: r.texts("aud"), expires: r.time("exp"), notBefore: r.time("nbf"), issuedAt: r.time("iat"),
	}
	c.confirmation, c.confirmed = r.all["cnf"]
	return c, !r.wrong
}

func (r *claimReader) text(name string) string {
	value := r.all[name]
	text, ok := value.(string)
	r.wrong = r.wrong || !ok && value != nil
	return text
}

// texts returns a text or a list of texts.
func (r *claimReader) texts(name string) []string {
	list, ok := r.all[name].([]any)
	if !ok {
		if text := r.text(name); text != "" {
			return []string{text}
		}
	}
	texts := make([]string, len(list))
	for i, element := range list {
		texts[i], ok = element.(string)
		r.wrong = r.wrong || !ok
	}
	return texts
}

func (r *claimReader) time(name string) time.Time {
	value := r.all[name]
	if value == nil {
		return time.Time{}
	}
	number, ok := value.(float64)
	found, valid := numericDate(number)
	r.wrong = r.wrong || !ok || !valid
	return found
}

// numericDate returns the time of a claim: seconds since 1970, with a fraction (RFC 7519, section 2). It reports whether the number is
// one before the year 10000.
func numericDate(number float64) (time.Time, bool) {
	whole, fraction := math.Modf(number)
	return time.Unix(int64(whole), int64(fraction*1e9)), number >= 0 && number <= 253402300799
}

// openToken parses a token. It does not check the signature and the claims.
func openToken(text string) (*token, *Error) {
	s, err := jws.Open(text)
	if err != nil {
		return nil, invalidToken("the token " + err.Error())
	}
	found := claimReader{}
	if json.Unmarshal(s.Payload, &found.all) != nil || found.all == nil {
		return nil, invalidToken("the token has claims that cannot be read")
	}
	decisive, ok := found.read()
	if !ok {
		return nil, invalidToken("the token has claims that cannot be read")
	}
	return &token{Signed: s, text: text, claims: decisive, all: found.all}, nil
}

// checkToken checks a token, except for the key that it is bound to.
func (v *Verifier) checkToken(ctx context.Context, t *token, from *keySource) *Error {
	if !slices.Contains(from.Algorithms, t.Header.Algorithm) {
		return invalidToken("the token has an algorithm that this service does not accept")
	}
	if t.Header.Key != nil {
		return invalidToken("the token brings a key of its own")
	}
	// A token of another kind with the same issuer and audience, such as one for a logout, is no access token.
	if kind := strings.TrimPrefix(strings.ToLower(t.Header.Type), "application/"); kind != "at+jwt" &&
		(from.RequireTokenType || kind != "jwt" && kind != "") {
		return invalidToken("the token has a type that is not the type of access tokens")
	}
	key, refused := from.key(ctx, t.Header.KeyID, t.Header.Algorithm, false)
	if refused != nil {
		return refused
	}
	id := signatureOf(key, t.text)
	if _, right := v.signatures.get(id); !right {
		if err := key.verify(t.Signed); err != nil {
			return invalidToken("the token " + err.Error())
		}
		v.signatures.add(id, struct{}{})
	}
	return t.claims.check(from.Audiences, v.config.Now(), v.config.Skew)
}

// check checks the claims of a token whose signature is right.
func (c *claims) check(audiences []string, now time.Time, skew time.Duration) *Error {
	switch {
	case c.subject == "":
		return invalidToken("the token has no subject")
	case !slices.ContainsFunc(c.audience, func(name string) bool { return slices.Contains(audiences, name) }):
		return invalidToken("the token is for another audience")
	case c.expires.IsZero():
		return invalidToken("the token never expires")
	case !now.Before(c.expires.Add(skew)):
		return invalidToken("the token has expired")
	case c.notBefore.After(now.Add(skew)):
		return invalidToken("the token is not valid yet")
	case c.issuedAt.After(now.Add(skew)):
		return invalidToken("the token was issued in the future")
	}
	return nil
}

// client returns the program that the caller uses.
func (c *claims) client() string {
	return cmp.Or(c.clientID, c.authorizedParty)
}

// boundTo returns the thumbprint of the key that the token is bound to (RFC 9449, section 6.1), or nothing.
// Confirmation by other means is refused, since a token with it would otherwise be accepted from anybody.
func (c *claims) boundTo() (string, *Error) {
	if !c.confirmed {
		return "", nil
	}
	means, _ := c.confirmation.(map[string]any)
	thumbprint, _ := means["jkt"].(string)
	if len(means) != 1 {
		return "", invalidToken("the token is bound by means that this service cannot check")
	}
	if hash, err := base64.RawURLEncoding.Strict().DecodeString(thumbprint); err != nil || len(hash) != 32 {
		return "", invalidToken("the token is bound by means that this service cannot check")
	}
	return thumbprint, nil
}
