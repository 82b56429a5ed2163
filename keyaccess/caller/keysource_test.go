// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// source returns the keys of the first issuer.
func (w *fixture) source() *keySource { return w.verifier.issuers[w.issuer.URL] }

// awaitRefresh waits until no request to the issuer is under way.
func (w *fixture) awaitRefresh() { w.source().flying.Wait() }

func (w *fixture) asked(want int) {
	w.Helper()
	w.awaitRefresh()
	if got := w.issuer.Asked(issuer.KeysPath); got != want {
		w.Fatalf("the issuer was asked for its keys %d times, expected %d", got, want)
	}
}

func TestKeysAreFetchedOnceForManyCalls(t *testing.T) {
	w := newFixture(t, nil)
	w.asked(0)
	var calls sync.WaitGroup
	for range maxWaiting {
		request := w.request(w.bound())
		calls.Go(func() {
			if _, err := w.verifier.Verify(t.Context(), request); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	w.asked(1)
}

func TestKeysAreRefreshedInTheBackgroundWhileTheyAreUsed(t *testing.T) {
	w := newFixture(t, nil)
	w.accept(w.request(w.bound()))
	w.clock.Add(DefaultRefreshKeys)
	// The call does not wait for the issuer, which answers only after it.
	release := make(chan struct{})
	w.issuer.Replace(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		<-release
		http.Error(rw, "", http.StatusInternalServerError)
	}))
	w.accept(w.request(w.bound()))
	close(release)
	w.awaitRefresh()
	w.issuer.Replace(nil)
	w.clock.Add(fetchRetry)
	w.accept(w.request(w.bound()))
	w.asked(2)
	w.clock.Add(DefaultRefreshKeys - time.Second)
	w.accept(w.request(w.bound()))
	w.asked(2)
}

func TestANewKeyIsFoundAtItsFirstToken(t *testing.T) {
	w := newFixture(t, nil)
	w.accept(w.request(w.bound()))
	w.clock.Add(fetchFloor)
	if err := w.issuer.Rotate(jose.RS256); err != nil {
		t.Fatal(err)
	}
	w.accept(w.request(w.bound()))
	w.asked(2)
}

func TestAWithdrawnKeyIsRefusedAfterTheRefresh(t *testing.T) {
	w := newFixture(t, nil)
	token := w.issuer.Token(with(w.issuer.Claims("alice", w.prover.Key), map[string]any{"exp": w.clock.Now().Add(time.Hour).Unix()}))
	w.accept(w.request(token))
	if err := w.issuer.Rotate(jose.ES256); err != nil {
		t.Fatal(err)
	}
	w.issuer.Withdraw()
	w.clock.Add(DefaultRefreshKeys)
	w.accept(w.request(token)) // this call starts the refresh
	w.awaitRefresh()
	w.refuse(w.request(token), InvalidToken, "does not publish")
}

// TestForgedKeyIdsDoNotReachTheIssuer tests an attack: a stranger tries to make the service ask the issuer all the time.
func TestForgedKeyIdsDoNotReachTheIssuer(t *testing.T) {
	w := newFixture(t, nil)
	w.accept(w.request(w.bound()))
	forger := w.newProver(jose.ES256).SigningKey()
	forged := func(n int) Request {
		return w.request(issuer.Sign(forger, map[string]any{"kid": fmt.Sprint("forged-", n)}, w.issuer.Claims("alice", w.prover.Key)))
	}
	for n := range 50 {
		w.refuse(forged(n), InvalidToken, "does not publish")
	}
	w.asked(1)
	w.clock.Add(fetchFloor)
	for n := range 50 {
		w.refuse(forged(n), InvalidToken, "does not publish")
	}
	w.asked(2)
}

func TestGoodTokensAreAcceptedWhileForgedOnesWaitForTheIssuer(t *testing.T) {
	w := newFixture(t, nil)
	w.accept(w.request(w.bound()))
	w.clock.Add(fetchFloor)
	arrived, release := make(chan struct{}), make(chan struct{})
	w.issuer.Replace(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		http.Error(rw, "", http.StatusInternalServerError)
	}))
	forged := w.request(issuer.Sign(w.newProver(jose.ES256).SigningKey(), map[string]any{"kid": "forged"}, w.issuer.Claims("alice", w.prover.Key)))
	const callers = 50
	refused := make(chan error, callers)
	for range callers {
		go func() {
			_, err := w.verifier.Verify(t.Context(), forged)
			refused <- err
		}()
	}
	<-arrived
	// Only a few calls wait. The others get their answer while the issuer does not answer.
	for n := range callers - maxWaiting {
		select {
		case err := <-refused:
			if reason := reasonOf(err); reason != Unavailable {
				t.Errorf("a forged token got %v, expected the reason %d", err, Unavailable)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d callers with forged tokens got an answer, expected %d", n, callers, callers-maxWaiting)
		}
	}
	w.accept(w.request(w.bound()))
	close(release)
	for range maxWaiting {
		if reason := reasonOf(<-refused); reason != Unavailable {
			t.Errorf("a forged token that waited got the reason %d, expected %d", reason, Unavailable)
		}
	}
}

// A stranger can name an issuer that is away, and its own callers repeat their calls.
func TestCallsDoNotAllWaitForAnIssuerThatWasNeverThere(t *testing.T) {
	w := newFixture(t, nil)
	release := make(chan struct{})
	w.issuer.Replace(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	const callers = 50
	request, refused := w.request(w.bound()), make(chan error, callers) // one proof, which only one call could use
	for range callers {
		go func() {
			_, err := w.verifier.Verify(t.Context(), request)
			refused <- err
		}()
	}
	for n := range callers {
		if n == callers-maxWaiting {
			if w.source().failures.Load() > 0 {
				t.Errorf("%d calls waited until the request to the issuer had failed, expected %d", callers, maxWaiting)
			}
			close(release)
		}
		if err := <-refused; reasonOf(err) != Unavailable && n < callers-maxWaiting {
			t.Errorf("a call got %v, expected the reason %d", err, Unavailable)
		}
	}
}

func TestATokenOfANewKeyIsNotCalledInvalidWhileTheIssuerIsAway(t *testing.T) {
	w := newFixture(t, nil)
	w.accept(w.request(w.bound()))
	if err := w.issuer.Rotate(jose.ES256); err != nil {
		t.Fatal(err)
	}
	w.clock.Add(fetchFloor)
	w.issuer.Replace(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "", http.StatusBadGateway) }))
	w.refuse(w.request(w.bound()), Unavailable, "newer keys")
	w.refuse(w.request(w.bound()), Unavailable, "newer keys") // in the pause before the next request to the issuer
	w.issuer.Replace(nil)
	w.clock.Add(fetchRetry)
	w.accept(w.request(w.bound()))
}

func TestTheLastGoodKeysStayWhileTheIssuerIsAway(t *testing.T) {
	w := newFixture(t, nil)
	token := w.issuer.Token(with(w.issuer.Claims("alice", w.prover.Key), map[string]any{"exp": w.clock.Now().Add(3 * time.Hour).Unix()}))
	w.accept(w.request(token))
	w.issuer.Replace(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "", http.StatusBadGateway) }))
	w.clock.Add(DefaultKeepKeys - time.Second)
	w.accept(w.request(token))
	w.awaitRefresh()
	w.clock.Add(time.Second)
	w.refuse(w.request(token), Unavailable, "not available")
	w.awaitRefresh()
	w.issuer.Replace(nil)
	w.refuse(w.request(token), Unavailable, "not available") // the next request comes after a pause
	w.clock.Add(fetchRetry)
	w.accept(w.request(token))
}

func TestACallDoesNotWaitLongerThanItsContext(t *testing.T) {
	w := newFixture(t, nil)
	release := make(chan struct{})
	w.issuer.Replace(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.verifier.Verify(ctx, w.request(w.bound())); reasonOf(err) != Unavailable {
		t.Errorf("found %v", err)
	}
}

func TestFetchNamesTheIssuersWithoutKeys(t *testing.T) {
	w := newFixture(t, nil)
	w.issuer.Replace(http.NotFoundHandler())
	if known, err := w.verifier.Fetch(t.Context()); known != 0 || err == nil || !strings.Contains(err.Error(), w.issuer.URL) {
		t.Errorf("found %v", err)
	}
	w.issuer.Replace(nil)
	w.clock.Add(fetchRetry)
	if known, err := w.verifier.Fetch(t.Context()); known != 1 || err != nil {
		t.Error(err)
	}
	w.accept(w.request(w.bound()))
	w.asked(1)
}

// TestDocumentsThatAreRefused has answers that another server than the issuer could give.
func TestDocumentsThatAreRefused(t *testing.T) {
	text := func(format string) func(w *fixture) http.HandlerFunc {
		return func(w *fixture) http.HandlerFunc {
			return func(rw http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprint(rw, strings.ReplaceAll(format, "ISSUER", w.issuer.URL))
			}
		}
	}
	keys := func(set string) func(w *fixture) http.HandlerFunc {
		return func(w *fixture) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == issuer.KeysPath {
					_, _ = fmt.Fprint(rw, set)
					return
				}
				_, _ = fmt.Fprintf(rw, `{"issuer":%q,"jwks_uri":%q}`, w.issuer.URL, w.issuer.URL+issuer.KeysPath)
			}
		}
	}
	for name, test := range map[string]struct {
		answer func(w *fixture) http.HandlerFunc
		text   string
	}{
		"a document of another issuer": {text(`{"issuer":"https://evil.example","jwks_uri":"ISSUER/keys"}`), "discovery document is of the issuer"},
		"a document without an issuer": {text(`{"jwks_uri":"ISSUER/keys"}`), "discovery document is of the issuer"},
		"keys without TLS":             {text(`{"issuer":"ISSUER","jwks_uri":"http://127.0.0.1:1/keys"}`), "expected https"},
		"keys in a file":               {text(`{"issuer":"ISSUER","jwks_uri":"file:///etc/passwd"}`), "expected a URL"},
		"no URL of keys":               {text(`{"issuer":"ISSUER"}`), "expected a URL"},
		"no JSON":                      {text(`<html>`), "no JSON"},
		"an endless document":          {text(strings.Repeat(" ", maxDocument+1)), "more than"},
		"no keys":                      {keys(`{"keys":[]}`), "none of the 0"},
		"too many keys":                {keys(`{"keys":[` + strings.Repeat("{},", maxKeys) + `{}]}`), "at most 100"},
		"a shared key":                 {keys(`{"keys":[{"kty":"oct","k":"AAAA","kid":"key-1"}]}`), "none of the 1"},
		"an issuer that sends its clients elsewhere": {func(*fixture) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, "https://127.0.0.1:1/", http.StatusFound)
			}
		}, "found status 302"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			w.issuer.Replace(test.answer(w))
			w.refuse(w.request(w.bound()), Unavailable, "not available")
			w.awaitRefresh()
			if !strings.Contains(w.log.String(), test.text) {
				t.Errorf("the log lacks %q", test.text)
			}
		})
	}
}

func TestKeysForOtherPurposesAreNotUsed(t *testing.T) {
	for name, change := range map[string]func(members map[string]any){
		"a key for encryption":             func(m map[string]any) { m["use"] = "enc" },
		"a key for signing alone":          func(m map[string]any) { m["key_ops"] = []string{"sign"} },
		"a key for another algorithm":      func(m map[string]any) { m["alg"] = "ES384" },
		"a private key that was published": func(m map[string]any) { m["d"] = strings.Repeat("A", 43) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			other := w.newProver(jose.ES256)
			members := members(t, other.Key.Public())
			members["kid"] = "other"
			token := func() string {
				return issuer.Sign(other.SigningKey(), map[string]any{"kid": "other"}, w.issuer.Claims("alice", w.prover.Key))
			}
			w.issuer.Publish(members)
			w.accept(w.request(token()))
			change(members)
			w.clock.Add(DefaultRefreshKeys)
			w.accept(w.request(w.bound()))
			w.awaitRefresh()
			w.refuse(w.request(token()), InvalidToken, "")
		})
	}
}

func TestATokenWithoutAKeyIdNeedsExactlyOneKeyOfItsAlgorithm(t *testing.T) {
	w := newFixture(t, nil)
	without := func() Request {
		return w.request(issuer.Sign(w.issuer.Key(), nil, w.issuer.Claims("alice", w.prover.Key)))
	}
	w.accept(without())
	for _, next := range []struct {
		algorithm jose.SignatureAlgorithm
		accepted  bool
	}{{jose.RS256, true}, {jose.RS256, false}} {
		if err := w.issuer.Rotate(next.algorithm); err != nil {
			t.Fatal(err)
		}
		w.clock.Add(DefaultRefreshKeys)
		w.accept(w.request(w.bound()))
		w.awaitRefresh()
		if next.accepted {
			w.accept(without())
		} else {
			w.refuse(without(), InvalidToken, "more than one")
		}
	}
}

func TestAKeyThatItsIssuerPublishesSeveralTimesIsOneKey(t *testing.T) {
	for name, test := range map[string]struct {
		ids      []string
		header   map[string]any
		other    bool // the last one is another key
		accepted bool
	}{
		"with one id":                             {[]string{"a", "a"}, map[string]any{"kid": "a"}, false, true},
		"with two ids, and the token has one":     {[]string{"a", "b"}, map[string]any{"kid": "b"}, false, true},
		"with two ids, and the token has none":    {[]string{"a", "b"}, nil, false, true},
		"and another key with its id":             {[]string{"a", "a", "a"}, map[string]any{"kid": "a"}, true, false},
		"and another key, and the token has none": {[]string{"a", "b", "c"}, nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			key, other := w.newProver(jose.RS256), w.newProver(jose.RS256) // the issuer's own key is for ES256
			var entries []any
			for i, id := range test.ids {
				from := key
				if test.other && i == len(test.ids)-1 {
					from = other
				}
				entry := members(t, from.Key.Public())
				entry["kid"] = id
				entries = append(entries, entry)
			}
			w.issuer.Publish(entries...)
			token := w.request(issuer.Sign(key.SigningKey(), test.header, w.issuer.Claims("alice", w.prover.Key)))
			if test.accepted {
				w.accept(token)
			} else {
				w.refuse(token, InvalidToken, "more than one")
			}
		})
	}
}

func TestAnIssuerByHTTPOnTheLoopbackAddressNeedsItsSetting(t *testing.T) {
	w := newFixture(t, nil)
	w.issuer = issuer.Start(t, issuer.Options{HTTP: true, Audience: audience, Now: w.clock.Now})
	w.verifier = w.newVerifier(func(c *Config) { c.Issuers[0].LoopbackHTTP = true })
	w.accept(w.request(w.bound()))
}

func TestAnIssuerWithAnUnknownCertificateIsNotAsked(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Issuers[0].Authorities = nil })
	w.refuse(w.request(w.bound()), Unavailable, "not available")
	w.asked(0)
	if !strings.Contains(w.log.String(), "certificate") {
		t.Error("the log does not say why")
	}
}

func TestTokensOfOneIssuerAreNotCheckedWithTheKeysOfAnother(t *testing.T) {
	w := newFixture(t, nil)
	other := issuer.Start(t, issuer.Options{Audience: audience, Now: w.clock.Now})
	w.verifier = w.newVerifier(func(c *Config) {
		c.Issuers = append(c.Issuers, Issuer{URL: other.URL, Audiences: []string{audience}, Authorities: other.Authorities()})
	})
	w.accept(w.request(other.Token(other.Claims("alice", w.prover.Key))))
	w.accept(w.request(w.bound()))
	w.refuse(w.request(other.Token(w.issuer.Claims("alice", w.prover.Key))), InvalidToken, "wrong signature")
}
