// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// remembers reports whether the signature of a token by a key of the issuer is remembered.
func (w *world) remembers(token string, key jose.JSONWebKey) bool {
	w.Helper()
	return w.verifier.signatures.has(signatureOf(publicKey{thumbprint: issuer.Thumbprint(key.Public().Key)}, token))
}

func TestTheSignatureOfATokenIsRemembered(t *testing.T) {
	w := newWorld(t, nil)
	token := w.bound()
	if w.remembers(token, w.issuer.Key()) {
		t.Error("a token that never came is remembered")
	}
	w.accept(w.request(token))
	if !w.remembers(token, w.issuer.Key()) {
		t.Error("a token that was accepted is not remembered")
	}
	before := w.verifier.Stats()
	w.accept(w.request(token))
	if after := w.verifier.Stats(); after.SignatureHits != before.SignatureHits+1 || after.SignatureMisses != before.SignatureMisses {
		t.Errorf("found %+v, expected one hit more than %+v", after, before)
	}
}

// TestAChangedTokenIsNotTheOneThatIsRemembered is the attack of a caller with a good token who would like to be somebody else.
func TestAChangedTokenIsNotTheOneThatIsRemembered(t *testing.T) {
	w := newWorld(t, nil)
	token := w.bound()
	w.accept(w.request(token))
	parts := strings.Split(token, ".")
	for i, name := range []string{"header", "payload", "signature"} {
		for _, at := range []int{0, 1, len(parts[i]) / 2, len(parts[i]) - 2} {
			changed := append([]string{}, parts...)
			other := byte('A')
			if parts[i][at] == other {
				other = 'B'
			}
			changed[i] = parts[i][:at] + string(other) + parts[i][at+1:]
			if _, err := w.verifier.Verify(t.Context(), w.request(strings.Join(changed, "."))); reasonOf(err) != InvalidToken {
				t.Errorf("found %v for a token with another character at %d of its %s", err, at, name)
			}
		}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(payload), "alice", "admin", 1)))
	forged := strings.Join(parts, ".")
	w.refuse(w.request(forged), InvalidToken, "wrong signature")
	w.refuse(w.request(forged), InvalidToken, "wrong signature") // a failure is not remembered as a success
}

// TestWhatATokenSaysIsCheckedAlthoughItsSignatureIsRemembered has what could be skipped by mistake together with the signature.
func TestWhatATokenSaysIsCheckedAlthoughItsSignatureIsRemembered(t *testing.T) {
	claims := func(w *world, others map[string]any) string {
		return w.issuer.Token(with(w.issuer.Claims("alice", w.prover.Key), others))
	}
	t.Run("the token expires", func(t *testing.T) {
		w := newWorld(t, nil)
		token := w.bound()
		w.accept(w.request(token))
		w.clock.Add(5*time.Minute + DefaultSkew)
		w.refuse(w.request(token), InvalidToken, "expired")
	})
	t.Run("the token is for another service", func(t *testing.T) {
		w := newWorld(t, nil)
		token := claims(w, map[string]any{"aud": "https://other.example"})
		for range 2 {
			w.refuse(w.request(token), InvalidToken, "another audience")
		}
		if !w.remembers(token, w.issuer.Key()) {
			t.Error("the signature is not remembered, so the second request shows nothing")
		}
	})
	t.Run("the token is not valid yet", func(t *testing.T) {
		w := newWorld(t, nil)
		token := claims(w, map[string]any{"nbf": w.clock.Now().Add(time.Minute).Unix()})
		for range 2 {
			w.refuse(w.request(token), InvalidToken, "not valid yet")
		}
		w.clock.Add(time.Minute)
		w.accept(w.request(token))
	})
	t.Run("the token comes without the key that it is bound to", func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Issuers[0].PlainBearer = true })
		token := w.bound()
		w.accept(w.request(token))
		w.refuse(Request{Authorization: "Bearer " + token, Method: "POST", URL: path}, InvalidToken, "bound to a key")
		w.prover = w.newProver(jose.ES256)
		w.refuse(w.request(token), InvalidProof, "another key")
	})
	t.Run("the proof was used before", func(t *testing.T) {
		w := newWorld(t, nil)
		request := w.request(w.bound())
		w.accept(request)
		w.refuse(request, InvalidProof, "used before")
	})
}

// TestASignatureIsRememberedForOneKey is what an issuer does whose key was stolen: it publishes another one, perhaps by the same name.
func TestASignatureIsRememberedForOneKey(t *testing.T) {
	w := newWorld(t, nil)
	stolen, next := w.newProver(jose.ES256).Key, w.newProver(jose.ES256).Key
	w.issuer.Publish(jose.JSONWebKey{Key: stolen.Public(), KeyID: "same"})
	token := issuer.Sign(jose.JSONWebKey{Key: stolen, KeyID: "same", Algorithm: string(jose.ES256)}, map[string]any{"kid": "same"},
		with(w.issuer.Claims("alice", w.prover.Key), map[string]any{"exp": w.clock.Now().Add(time.Hour).Unix()}))
	w.accept(w.request(token))
	w.issuer.Publish(jose.JSONWebKey{Key: next.Public(), KeyID: "same"})
	w.clock.Add(DefaultRefreshKeys)
	w.accept(w.request(token)) // begins the refresh
	w.settled()
	w.refuse(w.request(token), InvalidToken, "wrong signature")
}

func TestRememberedSignaturesAreBounded(t *testing.T) {
	const limit = 4
	s := newSignatures(limit)
	id := func(n int) signatureID { return signatureOf(publicKey{}, fmt.Sprint(n)) }
	used := id(-1)
	s.add(used)
	for n := range 10 * limit {
		s.add(id(n))
		if !s.has(used) {
			t.Fatalf("a token in use is forgotten after %d others", n+1)
		}
		if found := len(s.current) + len(s.previous); found > 2*limit {
			t.Fatalf("found %d signatures, expected at most %d", found, 2*limit)
		}
	}
	if s.has(id(0)) {
		t.Error("a token that is not in use is never forgotten")
	}
}
