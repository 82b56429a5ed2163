// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// remembers reports whether the signature of a token by a key of the issuer is remembered.
func (w *fixture) remembers(token string, key jose.JSONWebKey) bool {
	w.Helper()
	_, found := w.verifier.signatures.get(signatureOf(publicKey{thumbprint: issuer.Thumbprint(key.Public().Key)}, token))
	return found
}

func TestTheSignatureOfATokenIsRemembered(t *testing.T) {
	w := newFixture(t, nil)
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

// TestAChangedTokenIsNotTheOneThatIsRemembered tests an attack: a caller with a good token changes it to impersonate somebody else.
func TestAChangedTokenIsNotTheOneThatIsRemembered(t *testing.T) {
	w := newFixture(t, nil)
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

// TestWhatATokenSaysIsCheckedAlthoughItsSignatureIsRemembered tests the checks that could be skipped by mistake together with the
// check of the signature.
func TestWhatATokenSaysIsCheckedAlthoughItsSignatureIsRemembered(t *testing.T) {
	claims := func(w *fixture, others map[string]any) string {
		return w.issuer.Token(with(w.issuer.Claims("alice", w.prover.Key), others))
	}
	t.Run("the token expires", func(t *testing.T) {
		w := newFixture(t, nil)
		token := w.bound()
		w.accept(w.request(token))
		w.clock.Add(5*time.Minute + DefaultSkew)
		w.refuse(w.request(token), InvalidToken, "expired")
	})
	t.Run("the token is for another service", func(t *testing.T) {
		w := newFixture(t, nil)
		token := claims(w, map[string]any{"aud": "https://other.example"})
		for range 2 {
			w.refuse(w.request(token), InvalidToken, "another audience")
		}
		if !w.remembers(token, w.issuer.Key()) {
			t.Error("the signature is not remembered, so the second request shows nothing")
		}
	})
	t.Run("the token is not valid yet", func(t *testing.T) {
		w := newFixture(t, nil)
		token := claims(w, map[string]any{"nbf": w.clock.Now().Add(time.Minute).Unix()})
		for range 2 {
			w.refuse(w.request(token), InvalidToken, "not valid yet")
		}
		w.clock.Add(time.Minute)
		w.accept(w.request(token))
	})
	t.Run("the token comes without the key that it is bound to", func(t *testing.T) {
		w := newFixture(t, func(c *Config) { c.Issuers[0].PlainBearer = true })
		token := w.bound()
		w.accept(w.request(token))
		w.refuse(Request{Authorization: "Bearer " + token, Method: "POST", URL: path}, InvalidToken, "bound to a key")
		w.prover = w.newProver(jose.ES256)
		w.refuse(w.request(token), InvalidProof, "another key")
	})
	t.Run("the proof was used before", func(t *testing.T) {
		w := newFixture(t, nil)
		request := w.request(w.bound())
		w.accept(request)
		w.refuse(request, InvalidProof, "used before")
	})
}

// TestASignatureIsRememberedForOneKey tests an issuer whose key was stolen: it publishes another key, perhaps with the same name.
func TestASignatureIsRememberedForOneKey(t *testing.T) {
	w := newFixture(t, nil)
	stolen, next := w.newProver(jose.ES256).Key, w.newProver(jose.ES256).Key
	w.issuer.Publish(jose.JSONWebKey{Key: stolen.Public(), KeyID: "same"})
	token := issuer.Sign(jose.JSONWebKey{Key: stolen, KeyID: "same", Algorithm: string(jose.ES256)}, map[string]any{"kid": "same"},
		with(w.issuer.Claims("alice", w.prover.Key), map[string]any{"exp": w.clock.Now().Add(time.Hour).Unix()}))
	w.accept(w.request(token))
	w.issuer.Publish(jose.JSONWebKey{Key: next.Public(), KeyID: "same"})
	w.clock.Add(DefaultRefreshKeys)
	w.accept(w.request(token)) // this call starts the refresh
	w.awaitRefresh()
	w.refuse(w.request(token), InvalidToken, "wrong signature")
}

// TestATokenIsRefusedWhenItsKeyIsGoneAlthoughItsSignatureIsRemembered tests an issuer whose key was stolen: it withdraws the key.
func TestATokenIsRefusedWhenItsKeyIsGoneAlthoughItsSignatureIsRemembered(t *testing.T) {
	w := newFixture(t, nil)
	stolen, next := w.newProver(jose.ES256).Key, w.newProver(jose.ES256).Key
	w.issuer.Publish(jose.JSONWebKey{Key: stolen.Public(), KeyID: "old"}, jose.JSONWebKey{Key: next.Public(), KeyID: "new"})
	token := issuer.Sign(jose.JSONWebKey{Key: stolen, KeyID: "old", Algorithm: string(jose.ES256)}, map[string]any{"kid": "old"},
		with(w.issuer.Claims("alice", w.prover.Key), map[string]any{"exp": w.clock.Now().Add(time.Hour).Unix()}))
	w.accept(w.request(token))
	w.issuer.Publish(jose.JSONWebKey{Key: next.Public(), KeyID: "new"})
	w.clock.Add(DefaultRefreshKeys)
	w.accept(w.request(token)) // this call starts the refresh
	w.awaitRefresh()
	w.refuse(w.request(token), InvalidToken, "with a key that its issuer does not publish")
}

// keyed returns a request whose proof has a text as its key.
func (w *fixture) keyed(token, key string) Request {
	return w.prove(token, map[string]any{"jwk": json.RawMessage(key)}, nil)
}

// TestTheKeyOfAProofIsRememberedByItsText tests attacks by the owner of a good token.
func TestTheKeyOfAProofIsRememberedByItsText(t *testing.T) {
	w := newFixture(t, nil)
	token := w.bound()
	text, err := json.Marshal(jose.JSONWebKey{Key: w.prover.Key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	good, remembered := string(text), func() int { return len(w.verifier.proofKeys.current) }
	broken := w.keyed(token, good)
	broken.Proofs[0] = broken.Proofs[0][:len(broken.Proofs[0])-8] + "AAAAAAAA"
	w.refuse(broken, InvalidProof, "")
	if found := remembered(); found != 0 {
		t.Errorf("found %d keys after a proof with a wrong signature, expected none", found)
	}
	for range 3 {
		w.accept(w.keyed(token, good))
	}
	if found := remembered(); found != 1 {
		t.Errorf("found %d keys after three good proofs with one key, expected 1", found)
	}
	named := `{"kid":"` + strings.Repeat("k", 1000) + `",` + good[1:]
	w.accept(w.keyed(token, named))
	for _, key := range w.verifier.proofKeys.current {
		if key.id != "" {
			t.Errorf("the name of a key is remembered: %.20q", key.id)
		}
	}
	w.refuse(w.keyed(token, `{"d":"AQ",`+good[1:]), InvalidProof, "private key")
	w.refuse(w.keyed(token, `{"use":"enc",`+good[1:]), InvalidProof, "does not accept")
	other := w.newProver(jose.ES256)
	w.refuse(Request{"DPoP " + token, []string{other.Proof("POST", endpoint, token)}, "POST", path}, InvalidProof, "another key")
	// The key of one caller is not the key of another one, who has a token of its own.
	theirs := w.issuer.Token(w.issuer.Claims("mallory", other.Key))
	w.refuse(w.keyed(theirs, good), InvalidProof, "another key")
}

func TestManyCallersAtOnceAreWhoTheyAre(t *testing.T) {
	w := newFixture(t, nil)
	w.verifier.signatures, w.verifier.proofKeys = newRecent[struct{}](2), newRecent[publicKey](2) // so that the service forgets them in the meantime
	var callers sync.WaitGroup
	for i := range 6 {
		name, prover := fmt.Sprint("caller-", i), w.newProver(jose.ES256)
		token := w.issuer.Token(w.issuer.Claims(name, prover.Key))
		callers.Go(func() {
			for range 20 {
				found, err := w.verifier.Verify(w.Context(), Request{"DPoP " + token, []string{prover.Proof("POST", endpoint, token)}, "POST", path})
				if err != nil || found.Subject != name || found.ProofThumbprint != issuer.Thumbprint(prover.Key.Public()) {
					t.Errorf("found %q, %v, expected %s", found.Subject, err, name)
				}
			}
		})
	}
	callers.Wait()
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	const limit = 4
	s := newRecent[int](limit)
	id := func(n int) source { return signatureOf(publicKey{}, fmt.Sprint(n)) }
	used := id(-1)
	s.add(used, -1)
	for n := range 10 * limit {
		s.add(id(n), n)
		if value, found := s.get(used); !found || value != -1 {
			t.Fatalf("what is in use is forgotten after %d others", n+1)
		}
		if found := len(s.current) + len(s.previous); found > 2*limit {
			t.Fatalf("found %d values, expected at most %d", found, 2*limit)
		}
	}
	if _, found := s.get(id(0)); found {
		t.Error("what is not in use is never forgotten")
	}
}
