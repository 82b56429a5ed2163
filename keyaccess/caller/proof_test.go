// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// TestProofsThatAreRefused has the attacks and mistakes that the rules of proofs are against.
func TestProofsThatAreRefused(t *testing.T) {
	claims := func(claims map[string]any) func(w *fixture) Request {
		return func(w *fixture) Request { return w.prove(w.bound(), nil, claims) }
	}
	header := func(header map[string]any) func(w *fixture) Request {
		return func(w *fixture) Request { return w.prove(w.bound(), header, nil) }
	}
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		request func(w *fixture) Request
		text    string
	}{
		"a stolen token comes without a proof": {func(w *fixture) Request {
			r := w.request(w.bound())
			r.Proofs = nil
			return r
		}, "found 0"},
		"a stolen token comes with a proof by the thief's key": {func(w *fixture) Request {
			token := w.bound()
			w.prover = w.newProver(jose.ES256)
			return w.request(token)
		}, "another key"},
		"a proof has the victim's key in its header and the thief's signature": {func(w *fixture) Request {
			token := w.bound()
			thief := w.newProver(jose.ES256)
			return Request{"DPoP " + token, []string{issuer.Sign(thief.SigningKey(), w.prover.Header(), w.prover.Claims("POST", endpoint, token))}, "POST", path}
		}, "wrong signature"},
		"two proofs": {func(w *fixture) Request {
			r := w.request(w.bound())
			r.Proofs = append(r.Proofs, r.Proofs[0])
			return r
		}, "found 2"},
		"two proofs in one header": {func(w *fixture) Request {
			r := w.request(w.bound())
			r.Proofs[0] += ", " + r.Proofs[0]
			return r
		}, "no JWS"},
		"a proof for another method": {func(w *fixture) Request {
			r := w.request(w.bound())
			r.Method = "GET"
			return r
		}, "another method"},
		"a proof for the method in lower case": {claims(map[string]any{"htm": "post"}), "another method"},
		"a proof for no method": {func(w *fixture) Request {
			r := w.prove(w.bound(), nil, map[string]any{"htm": nil})
			r.Method = ""
			return r
		}, "another method"},
		"a proof for another path": {func(w *fixture) Request {
			r := w.request(w.bound())
			r.URL = "/kas.AccessService/PublicKey"
			return r
		}, "another URL"},
		"a proof that another service got": {claims(map[string]any{"htu": "https://evil.example" + path}), "another URL"},
		"a proof that another service got, and its name as the Host": {func(w *fixture) Request {
			r := w.prove(w.bound(), nil, map[string]any{"htu": "https://evil.example" + path})
			r.URL = "https://evil.example" + path
			return r
		}, "another URL"},
		"a proof for the same host without TLS":             {claims(map[string]any{"htu": "http://keys.example" + path}), "another URL"},
		"a proof for another port":                          {claims(map[string]any{"htu": "https://keys.example:444" + path}), "another URL"},
		"a proof with a user before the host":               {claims(map[string]any{"htu": "https://keys.example@evil.example" + path}), "another URL"},
		"a proof with our host as a user":                   {claims(map[string]any{"htu": "https://x@keys.example" + path}), "another URL"},
		"a proof for a path alone":                          {claims(map[string]any{"htu": path}), "without scheme and host"},
		"a proof without a URL":                             {claims(map[string]any{"htu": nil}), "another URL"},
		"a proof with a path that servers read differently": {claims(map[string]any{"htu": service + "/kas.AccessService%2FRewrap"}), "another URL"},
		"a proof for another token": {func(w *fixture) Request {
			r := w.request(w.bound())
			r.Authorization = "DPoP " + w.issuer.Token(with(w.issuer.Claims("alice", w.prover.Key), map[string]any{"scope": "more"}))
			return r
		}, "another token"},
		"a proof for a token endpoint, which has no token":  {claims(map[string]any{"ath": nil}), "another token"},
		"a proof that was made a minute ago":                {claims(map[string]any{"iat": noon.Add(-61 * time.Second).Unix()}), "too old"},
		"a proof that was made in advance":                  {claims(map[string]any{"iat": noon.Add(31 * time.Second).Unix()}), "future"},
		"a proof without a time":                            {claims(map[string]any{"iat": nil}), "no time"},
		"a proof with a text as its time":                   {claims(map[string]any{"iat": "now"}), "cannot be read"},
		"a proof without an id, which cannot be remembered": {claims(map[string]any{"jti": nil}), "jti"},
		"a proof with an endless id":                        {claims(map[string]any{"jti": strings.Repeat("x", 257)}), "jti"},
		"a token of another kind as a proof":                {header(map[string]any{"typ": "at+jwt"}), "type"},
		"a proof without a type":                            {header(map[string]any{"typ": nil}), "type"},
		"a proof without a key":                             {header(map[string]any{"jwk": nil}), "no key"},
		"a proof with a critical header":                    {header(map[string]any{"crit": []string{"x"}, "x": 1}), "critical"},
		"a proof that shows the private key": {func(w *fixture) Request {
			token := w.bound()
			r := w.prove(token, nil, nil)
			r.Proofs[0] = compact(map[string]any{"typ": "dpop+jwt", "alg": "ES256", "jwk": jose.JSONWebKey{Key: w.prover.Key}}, []byte("{}"), []byte("x"))
			return r
		}, "private key"},
		"a proof with a shared key": {func(w *fixture) Request {
			r := w.request(w.bound())
			r.Proofs[0] = compact(map[string]any{"typ": "dpop+jwt", "alg": "HS256", "jwk": map[string]any{"kty": "oct", "k": "AA"}}, []byte("{}"), []byte("x"))
			return r
		}, "algorithm"},
		"a proof with a shared key and another algorithm": {func(w *fixture) Request {
			r := w.request(w.bound())
			r.Proofs[0] = compact(map[string]any{"typ": "dpop+jwt", "alg": "ES256", "jwk": map[string]any{"kty": "oct", "k": "AA"}}, []byte("{}"), []byte("x"))
			return r
		}, "private key"},
		"a proof without a signature": {func(w *fixture) Request {
			r := w.request(w.bound())
			r.Proofs[0] = compact(with(w.prover.Header(), map[string]any{"alg": "none"}), []byte("{}"), []byte("x"))
			return r
		}, "algorithm"},
		"a proof whose key does not fit its algorithm": {func(w *fixture) Request {
			r := w.request(w.bound())
			r.Proofs[0] = compact(with(w.prover.Header(), map[string]any{"alg": "RS256"}), []byte("{}"), []byte("x"))
			return r
		}, "wrong signature"},
		"a proof with a point that is not on its curve": {func(w *fixture) Request {
			r := w.request(w.bound())
			zeros := strings.Repeat("A", 43)
			r.Proofs[0] = compact(map[string]any{"typ": "dpop+jwt", "alg": "ES256", "jwk": map[string]any{"kty": "EC", "crv": "P-256", "x": zeros, "y": zeros}}, []byte("{}"), []byte("x"))
			return r
		}, "does not accept"},
		"a proof that is too long": {claims(map[string]any{"x": strings.Repeat("x", maxProof)}), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			w.refuse(test.request(w), InvalidProof, test.text)
		})
	}
}

func TestURLsOfProofsAreComparedInNormalForm(t *testing.T) {
	w := newFixture(t, nil)
	for _, url := range []string{
		"HTTPS://KEYS.example" + path, "https://keys.example:443" + path, endpoint + "?a=b", endpoint + "#c",
		service + "/x/../kas.AccessService/./Rewrap", service + "/kas.%41ccessService/Rewrap",
	} {
		t.Run(url, func(t *testing.T) { w.accept(w.prove(w.bound(), nil, map[string]any{"htu": url})) })
	}
}

func TestAProofForThePathAloneIsAcceptedWhereTheIssuerHasTheSetting(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Issuers[0].ProofWithPath = true })
	for url, text := range map[string]string{
		path:                                 "",
		"/kas.%41ccessService/./Rewrap":      "",
		endpoint:                             "",
		"https://evil.example" + path:        "another URL",
		"//evil.example" + path:              "another URL",
		"evil.example" + path:                "another URL",
		"/kas.AccessService/PublicKey":       "another URL",
		"/kas.AccessService%2FRewrap":        "another URL",
		strings.TrimPrefix(path, "/"):        "another URL",
		"https://keys.example/prefix" + path: "another URL",
		"":                                   "another URL",
	} {
		t.Run(url, func(t *testing.T) {
			request := w.prove(w.bound(), nil, map[string]any{"htu": url})
			if text != "" {
				w.refuse(request, InvalidProof, text)
			} else {
				w.accept(request)
				w.refuse(request, InvalidProof, "used before")
			}
		})
	}
}

func TestTheServiceMayHaveSeveralURLsAndAPathBehindAProxy(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.URLs = []string{"http://kas.svc:8080", "https://gateway.example/nation/kas/"} })
	for url, accepted := range map[string]bool{
		"http://kas.svc:8080" + path:                true,
		"https://gateway.example/nation/kas" + path: true,
		"https://gateway.example" + path:            false,
		"http://kas.svc:8080/nation/kas" + path:     false,
	} {
		t.Run(url, func(t *testing.T) {
			request := w.prove(w.bound(), nil, map[string]any{"htu": url})
			if _, err := w.verifier.Verify(t.Context(), request); (err == nil) != accepted {
				t.Errorf("found %v", err)
			}
		})
	}
}

func TestAProofIsAcceptedOnce(t *testing.T) {
	w := newFixture(t, nil)
	first := w.request(w.bound())
	w.accept(first)
	w.refuse(first, InvalidProof, "used before")
	// The service remembers the proof for as long as it would accept the time of the proof.
	for range 9 {
		w.clock.Add(7 * time.Second)
		w.refuse(first, InvalidProof, "")
	}
	w.accept(w.request(w.bound()))
}

func TestAProofIsAcceptedOnceByAVerifierAndTheOneThatReplacesIt(t *testing.T) {
	w := newFixture(t, nil)
	first := w.request(w.bound())
	w.accept(first)
	before := w.verifier
	w.verifier = w.newVerifier(func(c *Config) { c.Used = before.UsedProofs() })
	w.refuse(first, InvalidProof, "used before")
	second := w.request(w.bound())
	w.accept(second)
	w.verifier = before
	w.refuse(second, InvalidProof, "used before")
}

func TestAProofFromTheFutureIsRememberedUntilItIsOld(t *testing.T) {
	w := newFixture(t, nil)
	token := w.bound()
	ahead := w.prove(token, nil, map[string]any{"iat": w.clock.Now().Add(30 * time.Second).Unix()})
	w.accept(ahead)
	for range 90 {
		w.clock.Add(time.Second)
		w.refuse(ahead, InvalidProof, "used before")
	}
	w.clock.Add(time.Second)
	w.refuse(ahead, InvalidProof, "too old")
}

func TestAnIdOfAnotherKeyIsNoReplay(t *testing.T) {
	w := newFixture(t, nil)
	same := map[string]any{"jti": "1"}
	w.accept(w.prove(w.bound(), nil, same))
	w.prover = w.newProver(jose.ES256)
	w.accept(w.prove(w.bound(), nil, same))
}

// TestProofsThatAreRefusedTakeNoRoom has the reason why replays are looked for last.
func TestProofsThatAreRefusedTakeNoRoom(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Replays = 2 })
	for range 5 {
		w.refuse(w.prove(w.bound(), nil, map[string]any{"htm": "GET"}), InvalidProof, "another method")
	}
	w.accept(w.request(w.bound()))
}

func TestAFullTableOfProofsRefusesCalls(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Replays = 4 })
	as := func(subject string) Request { return w.request(w.issuer.Token(w.issuer.Claims(subject, w.prover.Key))) }
	w.accept(as("alice"))
	w.accept(as("alice"))
	w.refuse(as("alice"), Unavailable, "no room") // half of the table
	w.accept(as("bob"))
	first := as("carol")
	w.accept(first)
	w.refuse(as("dave"), Unavailable, "no room")
	w.refuse(first, InvalidProof, "used before")
	w.clock.Add(3 * time.Minute)
	w.accept(as("alice"))
}

func TestAClockThatIsSetBackMakesNoUsedProofGoodAgain(t *testing.T) {
	const life = DefaultProofAge + DefaultSkew
	for sentence, pauses := range map[string][]time.Duration{
		"generation after generation": {life, life},
		"both generations at once":    {2 * life},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newFixture(t, nil)
			used, unused := w.request(w.bound()), w.request(w.bound())
			w.accept(used)
			for _, pause := range pauses {
				w.clock.Add(pause)
				w.accept(w.request(w.bound()))
			}
			w.clock.Add(-2 * life)
			w.refuse(used, Unavailable, "clock of this service was set back")
			w.refuse(unused, Unavailable, "clock of this service was set back")
			w.clock.Add(time.Second)
			w.accept(w.request(w.bound()))
		})
	}
}

func TestTheOldestProofThatIsAllowedIsAcceptedAtAnyTime(t *testing.T) {
	w := newFixture(t, nil)
	token := w.issuer.Token(with(w.issuer.Claims("alice", w.prover.Key), map[string]any{"exp": w.clock.Now().Add(time.Hour).Unix()}))
	for range 30 {
		w.clock.Add(11 * time.Second)
		now := w.clock.Now()
		for _, issued := range []time.Time{now.Add(DefaultSkew), now, now.Add(time.Second - DefaultProofAge)} {
			w.accept(w.prove(token, nil, map[string]any{"iat": issued.Unix()}))
		}
	}
}

func TestTheTableOfProofsStaysBounded(t *testing.T) {
	const limit = 100
	r, now := newReplays(limit, 90*time.Second), time.Now()
	for i := range 10000 {
		now = now.Add(500 * time.Millisecond)
		r.add(identityOf(fmt.Sprint(i)), identityOf(fmt.Sprint(i%7)), now, now)
		if size := len(r.current.proofs) + len(r.previous.proofs); size > limit {
			t.Fatalf("found %d proofs, expected at most %d", size, limit)
		}
		if size := len(r.current.callers) + len(r.previous.callers); size > limit {
			t.Fatalf("found %d callers, expected at most %d", size, limit)
		}
	}
}

func TestCertificatesInKeysAreNotRead(t *testing.T) {
	w := newFixture(t, nil)
	text, err := json.Marshal(jose.JSONWebKey{Key: w.prover.Key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), "{", `{"x5c":["`+rand.Text()+`"],"x5t":"AA",`, 1)
	if key, err := parseKey([]byte(broken)); err != nil || key.thumbprint != issuer.Thumbprint(w.prover.Key.Public()) {
		t.Errorf("found %v", err)
	}
}
