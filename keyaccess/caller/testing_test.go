// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// service is the URL of the service in tests, and endpoint is the URL of its method.
const (
	service  = "https://keys.example"
	audience = "https://keys.example"
	path     = "/kas.AccessService/Rewrap"
	endpoint = service + path
)

// clock is a time that only tests change.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fixture is a verifier with an issuer, a caller's key, and a clock.
type fixture struct {
	*testing.T
	clock    *clock
	issuer   *issuer.Issuer
	verifier *Verifier
	prover   issuer.Prover
	log      *record
}

// record is a log that can be read while it is written.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(line)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func newFixture(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	w := &fixture{T: t, clock: &clock{now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}, log: &record{}}
	w.issuer = issuer.Start(t, issuer.Options{Audience: audience, Now: w.clock.Now})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.log)
		}
	})
	w.prover = w.newProver(jose.ES256)
	w.verifier = w.newVerifier(change)
	return w
}

func (w *fixture) newProver(algorithm jose.SignatureAlgorithm) issuer.Prover {
	w.Helper()
	key, err := issuer.NewKey(algorithm)
	if err != nil {
		w.Fatal(err)
	}
	return issuer.Prover{Key: key, Algorithm: algorithm, Now: w.clock.Now}
}

func (w *fixture) newVerifier(change func(*Config)) *Verifier {
	w.Helper()
	config := Config{
		Issuers: []Issuer{{URL: w.issuer.URL, Audiences: []string{audience}, Authorities: w.issuer.Authorities()}},
		URLs:    []string{service}, Now: w.clock.Now, Replays: 1000, Log: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	if change != nil {
		change(&config)
	}
	v, err := New(config)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(v.Close)
	return v
}

// bound returns a good token that is bound to the key of the caller.
func (w *fixture) bound() string { return w.issuer.Token(w.issuer.Claims("alice", w.prover.Key)) }

// request returns a request with a proof for a token.
func (w *fixture) request(token string) Request {
	return Request{"DPoP " + token, []string{w.prover.Proof("POST", endpoint, token)}, "POST", path}
}

// prove returns a request whose proof has the given changes in its header and its claims. A nil value removes a claim.
func (w *fixture) prove(token string, header, claims map[string]any) Request {
	return Request{"DPoP " + token, []string{issuer.Sign(w.prover.SigningKey(),
		with(w.prover.Header(), header), with(w.prover.Claims("POST", endpoint, token), claims))}, "POST", path}
}

func (w *fixture) accept(request Request) Caller {
	w.Helper()
	found, err := w.verifier.Verify(w.Context(), request)
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// refuse expects an error with a reason and a text, and nothing of the request in what the caller and the log get.
func (w *fixture) refuse(request Request, reason Reason, text string) {
	w.Helper()
	found, err := w.verifier.Verify(w.Context(), request)
	refused := (*Error)(nil)
	if !errors.As(err, &refused) || refused.Reason != reason || !strings.Contains(refused.Error(), text) {
		w.Fatalf("found %v, expected the reason %d with %q", err, reason, text)
	}
	if found.Subject != "" || found.Claims != nil {
		w.Errorf("found the caller %+v beside an error", found)
	}
	told := refused.Error() + strings.Join(w.verifier.Challenges(err), "")
	for _, sent := range append(strings.FieldsFunc(request.Authorization, isSeparator), strings.FieldsFunc(strings.Join(request.Proofs, "."), isSeparator)...) {
		if len(sent) > 8 && strings.Contains(told, sent) {
			w.Errorf("the answer %q repeats a part of the request", told)
		}
	}
}

// reasonOf returns the reason of an error, or 0.
func reasonOf(err error) Reason {
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return refused.Reason
	}
	return 0
}

func isSeparator(r rune) bool { return r == '.' || r == ' ' }

// with returns the claims with some replaced. A nil value removes a claim.
func with(claims, others map[string]any) map[string]any {
	result := maps.Clone(claims)
	maps.Copy(result, others)
	maps.DeleteFunc(result, func(_ string, value any) bool { return value == nil })
	return result
}

// compact returns a JWS of any parts.
func compact(header any, payload, signature []byte) string {
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode(text) + "." + encode(payload) + "." + encode(signature)
}

// members returns the members of a JWK.
func members(t *testing.T, public any) map[string]any {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKey{Key: public})
	if err != nil {
		t.Fatal(err)
	}
	var found map[string]any
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	return found
}
