// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/request"
)

var now = time.Unix(1_800_000_000, 0)

func sign(t testing.TB, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestARequestIsSignedByTheCallerAndInTime(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	claims := func(more map[string]any) map[string]any {
		all := map[string]any{"requestBody": "body"}
		for name, value := range more {
			all[name] = value
		}
		return all
	}
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	good := sign(t, jose.ES256, ec, claims(map[string]any{"iat": at(0), "exp": at(time.Minute)}))
	for name, c := range map[string]struct {
		token string
		key   crypto.PublicKey
		part  string // of the error, or empty
	}{
		"by the key":                    {good, ec.Public(), ""},
		"RS256":                         {sign(t, jose.RS256, other, claims(nil)), other.Public(), ""},
		"PS384":                         {sign(t, jose.PS384, other, claims(nil)), other.Public(), ""},
		"without a proven key":          {good, nil, ""},
		"a little late":                 {sign(t, jose.ES256, ec, claims(map[string]any{"exp": at(-50 * time.Second)})), ec.Public(), ""},
		"a little early":                {sign(t, jose.ES256, ec, claims(map[string]any{"iat": at(50 * time.Second)})), ec.Public(), ""},
		"by another key":                {good, other.Public(), "not of the key"},
		"too late":                      {sign(t, jose.ES256, ec, claims(map[string]any{"exp": at(-61 * time.Second)})), ec.Public(), "has expired"},
		"too late without a proven key": {sign(t, jose.ES256, ec, claims(map[string]any{"exp": at(-61 * time.Second)})), nil, "has expired"},
		"issued in the future":          {sign(t, jose.ES256, ec, claims(map[string]any{"iat": at(61 * time.Second)})), ec.Public(), "in the future"},
		"not yet":                       {sign(t, jose.ES256, ec, claims(map[string]any{"nbf": at(61 * time.Second)})), ec.Public(), "in the future"},
		"no body":                       {sign(t, jose.ES256, ec, map[string]any{}), ec.Public(), "no claim requestBody"},
		"a body that is an object":      {sign(t, jose.ES256, ec, map[string]any{"requestBody": map[string]any{}}), ec.Public(), "no claim requestBody"},
		"a time that is a text":         {sign(t, jose.ES256, ec, claims(map[string]any{"exp": "never"})), ec.Public(), "no claim requestBody"},
		"HMAC":                          {sign(t, jose.HS256, make([]byte, 32), claims(nil)), nil, "another algorithm"},
		"no algorithm":                  {"eyJhbGciOiJub25lIn0.eyJyZXF1ZXN0Qm9keSI6IiJ9.AA", nil, "another algorithm"},
		"empty":                         {"", nil, "no JWS"},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := request.Open(c.token, c.key, now)
			if c.part == "" && (err != nil || string(body) != "body") {
				t.Errorf("found %q, %v", body, err)
			}
			if c.part != "" && (err == nil || !strings.Contains(err.Error(), c.part)) {
				t.Errorf("found %q, %v, expected %q", body, err, c.part)
			}
		})
	}
}

// FuzzOpen looks for requests that panic or that pass without a signature by the key.
func FuzzOpen(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sign(f, jose.ES256, other, map[string]any{"requestBody": "{}"}))
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		if body, err := request.Open(token, key.Public(), now); err == nil {
			t.Errorf("a forged request was opened: %q", body)
		}
		_, _ = request.Open(token, nil, now) // does not panic
	})
}

// FuzzParse looks for requests that panic or that exceed the limits.
func FuzzParse(f *testing.F) {
	limits := request.Limits{Objects: 2, Policy: 10}
	f.Add([]byte(`{"requests":[{"keyAccessObjects":[{"keyAccessObjectId":"a","keyAccessObject":{"type":"wrapped","policyBinding":"x"}}],"policy":{"id":"p","body":"e30="}}]}`))
	f.Add([]byte(`{"keyAccess":{"wrappedKey":"AA==","policy_binding":{"hash":"x"}},"policy":"e30="}`))
	f.Add([]byte(`{"requests":[null,{}],"keyAccess":null}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		body, err := request.Parse(text, limits)
		if err != nil {
			return
		}
		objects := 0
		for _, policy := range body.Policies {
			objects += len(policy.GetKeyAccessObjects())
			if len(policy.GetPolicy().GetBody()) > limits.Policy {
				t.Error("a policy is larger than the limit")
			}
		}
		if objects < 1 || objects > limits.Objects {
			t.Errorf("found %d objects", objects)
		}
	})
}

func TestAHeaderThatIsLargeOrDemandsMoreIsRefusedAlsoWithoutAProvenKey(t *testing.T) {
	head := func(text string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"requestBody":"body"}`)) + ".AA"
	}
	for name, c := range map[string]struct{ header, part string }{
		"certificates":   {`{"alg":"ES256","x5c":[]}`, "a header that cannot be read"},
		"a large header": {`{"alg":"ES256","a":"` + strings.Repeat("a", 16<<10) + `"}`, "a header that cannot be read"},
		"no object":      {`[]`, "a header that cannot be read"},
		"a member twice": {`{"alg":"ES256","alg":"ES256"}`, "a header that cannot be read"},
		"a demand":       {`{"alg":"ES256","crit":["b64"],"b64":false}`, "critical"},
	} {
		if body, err := request.Open(head(c.header), nil, now); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: found %q, %v, expected %q", name, body, err, c.part)
		}
	}
	if _, err := request.Open(head(`{"alg":"ES256","typ":"JWT","kid":"1"}`), nil, now); err != nil {
		t.Error(err)
	}
}

func TestARequestOfManyValuesIsRefused(t *testing.T) {
	const object = `{"policy":{"body":"e30="},"keyAccessObjects":[{"keyAccessObject":{"type":"wrapped"}}]}`
	limits := request.Limits{Objects: 2, Policy: 10}
	for name, c := range map[string]struct{ body, part string }{
		"policies without objects": {`{"requests":[{},{},` + object + `]}`, "found 3 policies, expected at most 2"},
		"values that nobody reads": {`{"requests":[` + object + `],"x":[` + strings.Repeat("0,", 300) + `0]}`, "expected at most 300"},
		"empty objects":            {`{"requests":[` + object + strings.Repeat(",{}", 300) + `]}`, "expected at most 300"},
		"commas in a text":         {`{"requests":[` + object + `],"x":"\\\"` + strings.Repeat(",", 301) + `"}`, ""},
	} {
		_, err := request.Parse([]byte(c.body), limits)
		if (c.part == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: found %v, expected %q", name, err, c.part)
		}
	}
}
