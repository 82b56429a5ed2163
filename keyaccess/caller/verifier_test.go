// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

func TestACallerIsWhomTheTokenNames(t *testing.T) {
	w := newFixture(t, nil)
	claims := with(w.issuer.Claims("alice", w.prover.Key), map[string]any{"client_id": "app", "groups": []string{"a", "b"}})
	found := w.accept(w.request(w.issuer.Token(claims)))
	if found.Issuer != w.issuer.URL || found.Subject != "alice" || found.ClientID != "app" {
		t.Errorf("found %+v", found)
	}
	if fmt.Sprint(found.Claims["groups"]) != "[a b]" || !found.Expires.Equal(w.clock.Now().Add(5*time.Minute)) {
		t.Errorf("found the claims %v and %s", found.Claims, found.Expires)
	}
	type comparable interface{ Equal(crypto.PublicKey) bool }
	if key, ok := found.ProofKey.(comparable); !ok || !key.Equal(w.prover.Key.Public()) || found.ProofThumbprint != issuer.Thumbprint(w.prover.Key.Public()) {
		t.Errorf("found the key %v with %s", found.ProofKey, found.ProofThumbprint)
	}
	if log := w.log.String(); strings.Contains(log, "alice") || strings.Contains(log, "eyJ") {
		t.Errorf("the log has a part of the token: %s", log)
	}
}

func TestEachAlgorithmIsAcceptedForTokensAndProofs(t *testing.T) {
	for _, name := range Algorithms {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			if err := w.issuer.Rotate(jose.SignatureAlgorithm(name)); err != nil {
				t.Fatal(err)
			}
			w.prover = w.newProver(jose.SignatureAlgorithm(name))
			w.accept(w.request(w.bound()))
		})
	}
}

// TestTokensThatAreRefused has the attacks and mistakes that the rules of tokens are against.
func TestTokensThatAreRefused(t *testing.T) {
	type refusal struct {
		token func(w *fixture) string
		text  string
	}
	changed := func(claims map[string]any) func(w *fixture) string {
		return func(w *fixture) string {
			return w.issuer.Token(with(w.issuer.Claims("alice", w.prover.Key), claims))
		}
	}
	headed := func(header map[string]any) func(w *fixture) string {
		return func(w *fixture) string {
			key := w.issuer.Key()
			return issuer.Sign(key, with(map[string]any{"typ": "at+jwt", "kid": key.KeyID}, header), w.issuer.Claims("alice", w.prover.Key))
		}
	}
	at := func(d time.Duration) int64 { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).Add(d).Unix() }
	for name, test := range map[string]refusal{
		"a token without a signature says that it needs none": {func(w *fixture) string {
			parts := strings.Split(w.bound(), ".")
			payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
			return compact(map[string]any{"alg": "none", "typ": "at+jwt", "kid": "key-1"}, payload, []byte("x"))
		}, "algorithm"},
		"a token has an empty signature": {func(w *fixture) string {
			token := w.bound()
			return token[:strings.LastIndexByte(token, '.')+1]
		}, "no JWS"},
		"a token is signed by HMAC with the public key of the issuer": {func(w *fixture) string {
			signing := w.issuer.Key()
			public, err := x509.MarshalPKIXPublicKey(signing.Public().Key)
			if err != nil {
				t.Fatal(err)
			}
			return issuer.Sign(jose.JSONWebKey{Key: public, Algorithm: "HS256"},
				map[string]any{"typ": "at+jwt", "kid": "key-1"}, w.issuer.Claims("alice", w.prover.Key))
		}, "algorithm"},
		"a token is signed with a key of the sender, and says it is the issuer's": {func(w *fixture) string {
			forger := w.newProver(jose.ES256).SigningKey()
			return issuer.Sign(forger, map[string]any{"typ": "at+jwt", "kid": "key-1"}, w.issuer.Claims("alice", w.prover.Key))
		}, "wrong signature"},
		"a token brings the key that it is signed with": {func(w *fixture) string {
			forger := w.newProver(jose.ES256)
			return issuer.Sign(forger.SigningKey(), map[string]any{"typ": "at+jwt", "kid": "key-1", "jwk": jose.JSONWebKey{Key: forger.Key.Public()}},
				w.issuer.Claims("alice", w.prover.Key))
		}, "key of its own"},
		"a token has an algorithm that its key is not for": {func(w *fixture) string {
			forger := w.newProver(jose.RS256).SigningKey()
			return issuer.Sign(forger, map[string]any{"typ": "at+jwt", "kid": "key-1"}, w.issuer.Claims("alice", w.prover.Key))
		}, "does not publish"},
		"a claim was changed after the signature": {func(w *fixture) string {
			parts := strings.Split(w.bound(), ".")
			payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
			parts[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(payload), "alice", "admin", 1)))
			return strings.Join(parts, ".")
		}, "wrong signature"},
		"a token names a key that the issuer does not have": {headed(map[string]any{"kid": "key-2"}), "does not publish"},
		"a token has a critical header":                     {headed(map[string]any{"crit": []string{"exp"}, "exp": 1}), "critical"},
		"a token has a payload without base64":              {headed(map[string]any{"b64": true}), "critical"},
		"a token has a chain of certificates":               {headed(map[string]any{"x5c": []string{}}), "header"},
		"a token for a logout is used as an access token":   {headed(map[string]any{"typ": "logout+jwt"}), "type"},
		"a proof is used as an access token":                {headed(map[string]any{"typ": "dpop+jwt"}), "type"},
		"a token is of an unknown issuer":                   {changed(map[string]any{"iss": "https://evil.example"}), "does not trust"},
		"a token names the issuer with a slash more":        {func(w *fixture) string { return changed(map[string]any{"iss": w.issuer.URL + "/"})(w) }, "does not trust"},
		"a token has no issuer":                             {changed(map[string]any{"iss": nil}), "does not trust"},
		"a token has a list of issuers":                     {changed(map[string]any{"iss": []string{"a"}}), "cannot be read"},
		"a token is for another service":                    {changed(map[string]any{"aud": "https://other.example"}), "another audience"},
		"a token is for many other services":                {changed(map[string]any{"aud": []string{"a", "b"}}), "another audience"},
		"a token has no audience":                           {changed(map[string]any{"aud": nil}), "another audience"},
		"a token has no subject":                            {changed(map[string]any{"sub": nil}), "no subject"},
		"a token has no end":                                {changed(map[string]any{"exp": nil}), "never expires"},
		"a token has a text as its end":                     {changed(map[string]any{"exp": "tomorrow"}), "cannot be read"},
		"a token has an end that overflows":                 {changed(map[string]any{"exp": 1e300}), "cannot be read"},
		"a token has expired longer ago than the skew":      {changed(map[string]any{"exp": at(-30 * time.Second)}), "expired"},
		"a token begins later than the skew":                {changed(map[string]any{"nbf": at(31 * time.Second)}), "not valid yet"},
		"a token was issued later than the skew":            {changed(map[string]any{"iat": at(31 * time.Second)}), "future"},
		"a token is bound to a certificate":                 {changed(map[string]any{"cnf": map[string]any{"x5t#S256": strings.Repeat("A", 43)}}), "means"},
		"a token is bound to a key and a certificate": {func(w *fixture) string {
			return changed(map[string]any{"cnf": map[string]any{"jkt": issuer.Thumbprint(w.prover.Key.Public()), "x5t#S256": strings.Repeat("A", 43)}})(w)
		}, "means"},
		"a token is bound to nothing that is a hash": {changed(map[string]any{"cnf": map[string]any{"jkt": ""}}), "means"},
		"a token without a bound key comes as DPoP":  {changed(map[string]any{"cnf": nil}), "bound to no key"},
		"a claim is there twice": {func(w *fixture) string {
			key := w.issuer.Key()
			text, _ := json.Marshal(w.issuer.Claims("alice", w.prover.Key))
			return issuer.SignBytes(key, map[string]any{"kid": key.KeyID}, []byte(`{"sub":"admin",`+string(text[1:])))
		}, "cannot be read"},
		"the payload is no object": {func(w *fixture) string {
			return issuer.SignBytes(w.issuer.Key(), nil, []byte("null"))
		}, "cannot be read"},
		"a token is too long":                     {changed(map[string]any{"x": strings.Repeat("x", maxToken)}), "longer than"},
		"a token has four parts":                  {func(w *fixture) string { return w.bound() + ".x" }, "no JWS"},
		"a token has a line end in its signature": {func(w *fixture) string { return w.bound() + "\n" }, "no JWS"},
		"the last bits of a signature are not zero": {func(w *fixture) string {
			// 64 bytes are 86 characters, of which the last has 4 unused bits.
			token := w.bound()
			last := strings.IndexByte(base64Digits, token[len(token)-1])
			return token[:len(token)-1] + string(base64Digits[last|1])
		}, "no JWS"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			w.refuse(w.request(test.token(w)), InvalidToken, test.text)
		})
	}
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func TestTheSkewIsAllowedForTokens(t *testing.T) {
	w := newFixture(t, nil)
	at := func(d time.Duration) int64 { return w.clock.Now().Add(d).Unix() }
	for name, claims := range map[string]map[string]any{
		"an end just now":           {"exp": at(-29 * time.Second)},
		"a beginning in the future": {"nbf": at(30 * time.Second)},
		"issued in the future":      {"iat": at(30 * time.Second)},
		"several audiences":         {"aud": []string{"other", audience}},
		"times with fractions":      {"exp": float64(at(time.Minute)) + 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			w.accept(w.request(w.issuer.Token(with(w.issuer.Claims("alice", w.prover.Key), claims))))
		})
	}
}

func TestTypesOfTokens(t *testing.T) {
	for _, test := range []struct {
		kind               any
		usual, onlyAtPlusJ bool
	}{{"at+jwt", true, true}, {"application/at+jwt", true, true}, {"AT+JWT", true, true}, {"JWT", true, false}, {nil, true, false}, {"dpop+jwt", false, false}} {
		t.Run(fmt.Sprint(test.kind), func(t *testing.T) {
			w := newFixture(t, nil)
			strict := w.newVerifier(func(c *Config) { c.Issuers[0].RequireTokenType = true })
			key := w.issuer.Key()
			token := issuer.Sign(key, with(map[string]any{"kid": key.KeyID}, map[string]any{"typ": test.kind}), w.issuer.Claims("alice", w.prover.Key))
			if _, err := w.verifier.Verify(t.Context(), w.request(token)); (err == nil) != test.usual {
				t.Errorf("found %v", err)
			}
			if _, err := strict.Verify(t.Context(), w.request(token)); (err == nil) != test.onlyAtPlusJ {
				t.Errorf("found %v where at+jwt is demanded", err)
			}
		})
	}
}

func TestAlgorithmsOfAnIssuerAreWhatTheConfigurationSays(t *testing.T) {
	w := newFixture(t, nil)
	w.verifier = w.newVerifier(func(c *Config) { c.Issuers[0].Algorithms = []string{"RS256"} })
	w.refuse(w.request(w.bound()), InvalidToken, "algorithm")
}

// TestPlainBearer tests which tokens are accepted after the word Bearer.
func TestPlainBearer(t *testing.T) {
	const no, plain, proof = 0, 1, 2
	for name, test := range map[string]struct {
		settings int
		request  func(w *fixture) Request
		reason   Reason
		text     string
	}{
		"a bound token that was stolen is refused without its key": {plain, func(w *fixture) Request {
			return Request{"Bearer " + w.bound(), nil, "POST", path}
		}, InvalidToken, "bound to a key"},
		"a bound token is refused as Bearer with its proof": {plain, func(w *fixture) Request {
			r := w.request(w.bound())
			r.Authorization = strings.Replace(r.Authorization, "DPoP", "Bearer", 1)
			return r
		}, InvalidToken, "bound to a key"},
		"a bound token is accepted as Bearer with its proof where the configuration says so": {proof, func(w *fixture) Request {
			r := w.request(w.bound())
			r.Authorization = strings.Replace(r.Authorization, "DPoP", "Bearer", 1)
			return r
		}, 0, ""},
		"a bound token is refused as Bearer without its proof where proofs may come with Bearer": {plain | proof, func(w *fixture) Request {
			return Request{"Bearer " + w.bound(), nil, "POST", path}
		}, InvalidToken, "bound to a key"},
		"a bound token is refused as Bearer with the proof of another key": {proof, func(w *fixture) Request {
			token := w.bound()
			return Request{"Bearer " + token, []string{w.newProver(jose.ES256).Proof("POST", endpoint, token)}, "POST", path}
		}, InvalidProof, "another key"},
		"an unbound token is refused": {no, func(w *fixture) Request {
			return Request{"Bearer " + w.issuer.Token(w.issuer.Claims("alice", nil)), nil, "POST", path}
		}, InvalidToken, "bound to no key"},
		"an unbound token is accepted where the configuration says so": {plain, func(w *fixture) Request {
			return Request{"bearer " + w.issuer.Token(w.issuer.Claims("alice", nil)), nil, "POST", path}
		}, 0, ""},
		"an unbound token is refused as DPoP even so": {plain, func(w *fixture) Request {
			return w.request(w.issuer.Token(w.issuer.Claims("alice", nil)))
		}, InvalidToken, "bound to no key"},
		"an unbound token is refused with a proof": {plain, func(w *fixture) Request {
			r := w.request(w.issuer.Token(w.issuer.Claims("alice", nil)))
			r.Authorization = strings.Replace(r.Authorization, "DPoP", "Bearer", 1)
			return r
		}, InvalidRequest, "bound to no key"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, func(c *Config) {
				c.Issuers[0].PlainBearer, c.Issuers[0].ProofWithBearer = test.settings&plain != 0, test.settings&proof != 0
			})
			if test.reason != 0 {
				w.refuse(test.request(w), test.reason, test.text)
			} else if found := w.accept(test.request(w)); (found.ProofKey == nil) != (test.settings == plain) {
				t.Errorf("found the key %v", found.ProofKey)
			}
		})
	}
}

func TestHeadersThatAreRefused(t *testing.T) {
	w := newFixture(t, nil)
	for name, test := range map[string]struct {
		value  string
		reason Reason
	}{
		"no header":                   {"", Missing},
		"another scheme":              {"Basic YTpi", Missing},
		"a scheme without a token":    {"DPoP", InvalidToken},
		"a scheme and spaces":         {"Bearer   ", InvalidToken},
		"a token without a scheme":    {w.bound(), Missing},
		"two tokens in one header":    {"DPoP " + w.bound() + ", DPoP " + w.bound(), InvalidToken},
		"two tokens behind a scheme":  {"DPoP " + w.bound() + " " + w.bound(), InvalidToken},
		"characters that tokens lack": {"DPoP \x00\xff", InvalidToken},
	} {
		t.Run(name, func(t *testing.T) {
			request := w.request(w.bound())
			request.Authorization = test.value
			w.refuse(request, test.reason, "")
		})
	}
}

func TestTwoHeadersWithTokensAreRefused(t *testing.T) {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, nil)
	request.Header["Authorization"] = []string{"DPoP a", "Bearer b"}
	if _, err := FromHTTP(request); reasonOf(err) != InvalidRequest {
		t.Errorf("found %v", err)
	}
}

func TestARequestByHTTPIsRead(t *testing.T) {
	w := newFixture(t, nil)
	token := w.bound()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://a-name-that-the-sender-chose"+path+"?x=y", nil)
	request.Header.Set("Authorization", "DPoP "+token)
	request.Header.Set("DPoP", w.prover.Proof("POST", endpoint, token))
	read, err := FromHTTP(request)
	if err != nil {
		t.Fatal(err)
	}
	w.accept(read)
}

func TestChallengesSayWhatIsMissing(t *testing.T) {
	w := newFixture(t, nil)
	both := w.newVerifier(func(c *Config) { c.Issuers[0].PlainBearer = true })
	expired := w.request(w.issuer.Token(with(w.issuer.Claims("alice", w.prover.Key), map[string]any{"exp": 1})))
	wrong := w.request(w.bound())
	wrong.Method = "GET"
	const algorithms = `algs="ES256 ES384 ES512 RS256 RS384 RS512 PS256 PS384 PS512 EdDSA"`
	for name, test := range map[string]struct {
		verifier *Verifier
		request  Request
		status   int
		want     []string
	}{
		"no credentials":             {w.verifier, Request{}, 401, []string{"DPoP " + algorithms}},
		"no credentials, both":       {both, Request{}, 401, []string{"DPoP " + algorithms, "Bearer"}},
		"an expired token":           {w.verifier, expired, 401, []string{`DPoP error="invalid_token", error_description="the token has expired", ` + algorithms}},
		"an expired token, both":     {both, expired, 401, []string{`DPoP error="invalid_token", error_description="the token has expired", ` + algorithms, "Bearer"}},
		"a wrong proof":              {w.verifier, wrong, 401, []string{`DPoP error="invalid_dpop_proof", error_description="the proof is for another method", ` + algorithms}},
		"a broken plain token, both": {both, Request{Authorization: "Bearer x"}, 401, []string{"DPoP " + algorithms, `Bearer error="invalid_token", error_description="the token is no JWS in the compact form"`}},
		"a proof with a plain token": {both, Request{"Bearer " + w.issuer.Token(w.issuer.Claims("a", nil)), []string{"x"}, "POST", path}, 400,
			[]string{"DPoP " + algorithms, `Bearer error="invalid_request", error_description="found a DPoP proof with a token that is bound to no key"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.verifier.Verify(t.Context(), test.request)
			if got := fmt.Sprint(test.verifier.Challenges(err)); got != fmt.Sprint(test.want) || (&Error{Reason: reasonOf(err)}).Status() != test.status {
				t.Errorf("found %s with %v, expected %s with %d", got, err, test.want, test.status)
			}
		})
	}
	if got := w.verifier.Challenges(unavailable("x")); got != nil || unavailable("x").Status() != 503 {
		t.Errorf("found %s for what is unavailable", got)
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		text   string
	}{
		"no issuer":             {func(c *Config) { c.Issuers = nil }, "at least one"},
		"an issuer twice":       {func(c *Config) { c.Issuers = append(c.Issuers, c.Issuers[0]) }, "second time"},
		"an issuer without TLS": {func(c *Config) { c.Issuers[0].URL = "http://127.0.0.1:1" }, "expected https"},
		"an issuer without TLS at a name": {func(c *Config) {
			c.Issuers[0].URL, c.Issuers[0].LoopbackHTTP = "http://localhost:1", true
		}, "loopback IP"},
		"an issuer without TLS elsewhere": {func(c *Config) {
			c.Issuers[0].URL, c.Issuers[0].LoopbackHTTP = "http://192.0.2.1:1", true
		}, "loopback IP"},
		"an issuer with a query":         {func(c *Config) { c.Issuers[0].URL = "https://issuer.example/?a" }, "without user"},
		"no audience":                    {func(c *Config) { c.Issuers[0].Audiences = nil }, "audience"},
		"an empty audience":              {func(c *Config) { c.Issuers[0].Audiences = []string{""} }, "audience"},
		"an algorithm with a shared key": {func(c *Config) { c.Issuers[0].Algorithms = []string{"HS256"} }, "HS256"},
		"no algorithm":                   {func(c *Config) { c.Issuers[0].Algorithms = []string{"none"} }, "none"},
		"no certificate":                 {func(c *Config) { c.Issuers[0].Authorities = []byte("x") }, "no certificate"},
		"keys kept too briefly":          {func(c *Config) { c.Issuers[0].KeepKeys = time.Minute }, "KeepKeys"},
		"keys kept too long":             {func(c *Config) { c.Issuers[0].KeepKeys = 25 * time.Hour }, "KeepKeys"},
		"no URL of the service":          {func(c *Config) { c.URLs = nil }, "bound to it"},
		"a URL without a scheme":         {func(c *Config) { c.URLs = []string{"keys.example"} }, "URLs[0]"},
		"a URL with a query":             {func(c *Config) { c.URLs = []string{"https://keys.example?x"} }, "URLs[0]"},
		"a URL with an unclear path":     {func(c *Config) { c.URLs = []string{"https://keys.example/a/../b"} }, "normal form"},
		"a skew too large":               {func(c *Config) { c.Skew = time.Hour }, "Skew"},
		"proofs too old":                 {func(c *Config) { c.ProofAge = time.Hour }, "ProofAge"},
		"no room for proofs":             {func(c *Config) { c.Replays = 1 }, "Replays"},
	} {
		t.Run(name, func(t *testing.T) {
			config := Config{Issuers: []Issuer{{URL: "https://issuer.example", Audiences: []string{"x"}}}, URLs: []string{service}}
			test.change(&config)
			if _, err := New(config); err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("found %v, expected %q", err, test.text)
			}
		})
	}
}

func TestShortRSAKeysOfCallersAreRefused(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	w := newFixture(t, nil)
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	w.prover = issuer.Prover{Key: key, Algorithm: jose.RS256, Now: w.clock.Now}
	w.refuse(w.request(w.bound()), InvalidProof, "does not accept")
}
