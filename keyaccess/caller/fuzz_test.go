// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/jws"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// fuzzed returns a verifier with a good token and a good proof. Its time stands still.
func fuzzed(f *testing.F) (verifier *Verifier, token string, prover issuer.Prover) {
	f.Helper()
	now := time.Now()
	clock := func() time.Time { return now }
	from := issuer.Start(f, issuer.Options{Audience: audience, Now: clock})
	v, err := New(Config{
		Issuers: []Issuer{{URL: from.URL, Audiences: []string{audience}, Authorities: from.Authorities()}}, URLs: []string{service}, Now: clock,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(v.Close)
	if _, err := v.Fetch(context.Background()); err != nil {
		f.Fatal(err)
	}
	key, err := issuer.NewKey(jose.ES256)
	if err != nil {
		f.Fatal(err)
	}
	prover = issuer.Prover{Key: key, Algorithm: jose.ES256, Now: clock}
	return v, from.Token(from.Claims("alice", key)), prover
}

// mustRefuse expects an error for the caller. Only a request that was accepted before may be refused as a replay.
func mustRefuse(t *testing.T, v *Verifier, request Request) {
	t.Helper()
	_, err := v.Verify(t.Context(), request)
	if refused := (*Error)(nil); !errors.As(err, &refused) || refused.Error() == "" || refused.Status() < 400 {
		t.Fatalf("found %v", err)
	}
	_ = v.Challenges(err)
}

// FuzzAuthorization changes the header Authorization. Nobody but the issuer can make another token that is accepted.
func FuzzAuthorization(f *testing.F) {
	v, token, prover := fuzzed(f)
	for _, seed := range []string{"", "DPoP", "DPoP " + token, "Bearer " + token, "DPoP  " + token, "dpop\t" + token, "Basic YTpi", "DPoP " + token + "=", "DPoP a.b.c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		_, text, refused := splitAuthorization(value)
		request := Request{value, []string{prover.Proof("POST", endpoint, text)}, "POST", path}
		if refused == nil && text == token && (value[0] == 'D' || value[0] == 'd') {
			if _, err := v.Verify(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			return
		}
		mustRefuse(t, v, request)
	})
}

// FuzzToken changes header, claims and signature of a token.
func FuzzToken(f *testing.F) {
	v, token, prover := fuzzed(f)
	good, err := jws.Open(token)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"alg":"ES256","kid":"key-1","typ":"at+jwt"}`), good.Payload, []byte("x"))
	f.Add([]byte(`{"alg":"none"}`), good.Payload, []byte("x"))
	f.Add([]byte(`{"alg":"ES256","jwk":{"kty":"EC"}}`), []byte(`{"iss":null,"aud":[],"exp":1e400}`), []byte{0})
	f.Add([]byte(`null`), []byte(`[]`), []byte{})
	f.Fuzz(func(t *testing.T, header, payload, signature []byte) {
		encode := base64.RawURLEncoding.EncodeToString
		text := encode(header) + "." + encode(payload) + "." + encode(signature)
		mustRefuse(t, v, Request{"DPoP " + text, []string{prover.Proof("POST", endpoint, text)}, "POST", path})
	})
}

// FuzzProof changes header, claims and signature of a proof.
func FuzzProof(f *testing.F) {
	v, token, prover := fuzzed(f)
	good, err := jws.Open(prover.Proof("POST", endpoint, token))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"alg":"ES256","typ":"dpop+jwt"}`), good.Payload, []byte("x"))
	f.Add([]byte(`{"alg":"ES256","typ":"dpop+jwt","jwk":`+string(good.Header.Key)+`}`), good.Payload, make([]byte, 64))
	f.Add([]byte(`{"alg":"RS256","typ":"dpop+jwt","jwk":{"kty":"RSA","n":"AQ","e":"AQAB"}}`), []byte(`{}`), []byte("x"))
	f.Add([]byte(`{"alg":"EdDSA","typ":"dpop+jwt","jwk":{"kty":"OKP","crv":"Ed25519","x":""}}`), []byte(`{}`), []byte("x"))
	f.Fuzz(func(t *testing.T, header, payload, signature []byte) {
		encode := base64.RawURLEncoding.EncodeToString
		mustRefuse(t, v, Request{"DPoP " + token, []string{encode(header) + "." + encode(payload) + "." + encode(signature)}, "POST", path})
	})
}

// FuzzURLOfAProof compares URLs. What is accepted names the service and the method.
func FuzzURLOfAProof(f *testing.F) {
	v, _, _ := fuzzed(f)
	for _, seed := range []string{endpoint, "https://keys.example", "HTTPS://keys.example:443/a/../b?c#d", "https://x@keys.example/", "https://keys.example%2fx/", "://", "https://[::1]:443/"} {
		f.Add(seed, path)
	}
	f.Fuzz(func(t *testing.T, claimed, requested string) {
		if v.isFor(claimed, requested) && !v.isFor(service+claimedPath(claimed), requested) {
			t.Fatalf("%q is for %q, and its path is not", claimed, requested)
		}
	})
}

// claimedPath returns the path of an absolute URL.
func claimedPath(text string) string {
	for i := range len(text) - 2 {
		if text[i:i+3] == "://" {
			_, path := splitAuthority(text[i+3:])
			return path
		}
	}
	return ""
}
