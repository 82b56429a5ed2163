// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

const kind = "test+jwt"

// peered has a peer that publishes keys, and the verifier of its statements.
type peered struct {
	*testing.T
	clock      *clock
	url        string
	asked      atomic.Int64
	document   atomic.Pointer[string]
	away       atomic.Bool
	waits      atomic.Pointer[chan struct{}] // answers wait until it is closed, if there is one
	statements *Statements
}

func newPeered(t *testing.T, keys ...jose.JSONWebKey) *peered {
	t.Helper()
	p := &peered{T: t, clock: &clock{now: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)}}
	server := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(server.Close)
	p.url = server.URL
	p.publish(keys...)
	var err error
	p.statements, err = NewStatements([]Peer{{URL: p.url, LoopbackHTTP: true}}, p.clock.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.statements.Close)
	return p
}

func (p *peered) publish(keys ...jose.JSONWebKey) {
	p.Helper()
	set := jose.JSONWebKeySet{}
	for _, key := range keys {
		set.Keys = append(set.Keys, key.Public())
	}
	text, err := json.Marshal(set)
	if err != nil {
		p.Fatal(err)
	}
	document := string(text)
	p.document.Store(&document)
}

func (p *peered) serve(w http.ResponseWriter, r *http.Request) {
	if waits := p.waits.Load(); waits != nil {
		<-*waits
	}
	switch {
	case p.away.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == PeerDiscoveryPath:
		_, _ = w.Write([]byte(`{"issuer":"` + p.url + `","jwks_uri":"` + p.url + `/keys"}`)) // if this fails, the test fails later
	default:
		_, _ = w.Write([]byte(*p.document.Load())) // if this fails, the test fails later
		p.asked.Add(1)
	}
}

// signing returns a key with an id.
func signing(t *testing.T, id string) jose.JSONWebKey {
	t.Helper()
	key, err := issuer.NewKey(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(jose.ES256)}
}

func (p *peered) statement(key jose.JSONWebKey) string {
	return issuer.Sign(key, map[string]any{"typ": kind, "kid": key.KeyID}, map[string]any{"iss": p.url})
}

// open returns the reason of the refusal of a statement, or 0.
func (p *peered) open(statement string) Reason {
	p.Helper()
	by, _, err := p.statements.Open(p.Context(), statement, kind, false)
	refused := (*Error)(nil)
	switch {
	case err == nil && by != p.url:
		p.Fatalf("found a statement by %q", by)
	case err != nil && !errors.As(err, &refused):
		p.Fatal(err)
	case err != nil:
		return refused.Reason
	}
	return 0
}

// until waits for a condition.
func (p *peered) until(what string, condition func() bool) {
	p.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			p.Fatalf("%s: not within a minute", what)
		}
	}
}

func TestOnlyStatementsOfPeersAreAccepted(t *testing.T) {
	key, stranger := signing(t, "1"), signing(t, "1")
	p := newPeered(t, key)
	claims := map[string]any{"iss": p.url}
	good := map[string]any{"typ": kind, "kid": "1"}
	if found := p.open(issuer.Sign(key, good, claims)); found != 0 {
		t.Fatalf("a good statement: found the reason %d", found)
	}
	for name, statement := range map[string]string{
		"by another key with the same id": issuer.Sign(stranger, good, claims),
		"without an id":                   issuer.Sign(key, map[string]any{"typ": kind}, claims),
		"with its own key":                issuer.Sign(stranger, map[string]any{"typ": kind, "kid": "1", "jwk": stranger.Public()}, claims),
		"of another kind":                 issuer.Sign(key, map[string]any{"typ": "other+jwt", "kid": "1"}, claims),
		"of another service":              issuer.Sign(key, good, map[string]any{"iss": "https://example.com"}),
		"with two issuers":                issuer.SignBytes(key, good, []byte(`{"iss":"https://example.com","iss":"`+p.url+`"}`)),
		"without a signature":             strings.TrimRight(issuer.Sign(key, good, claims), "-_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
		"without an algorithm":            "eyJhbGciOiJub25lIiwidHlwIjoidGVzdCtqd3QiLCJraWQiOiIxIn0.e30.AA",
	} {
		if found := p.open(statement); found != InvalidToken {
			t.Errorf("%s: found the reason %d", name, found)
		}
	}
}

// An attacker who has stolen a key of a peer can use it for at most five minutes after the peer has withdrawn it.
func TestAKeyThatAPeerHasWithdrawnIsForgottenAfterFiveMinutes(t *testing.T) {
	stolen, fresh := signing(t, "stolen"), signing(t, "fresh")
	p := newPeered(t, stolen)
	if found := p.open(p.statement(stolen)); found != 0 {
		t.Fatalf("found the reason %d", found)
	}
	p.publish(fresh)
	p.clock.Add(refreshPeer - time.Second)
	if found := p.open(p.statement(stolen)); found != 0 || p.asked.Load() != 1 {
		t.Fatalf("before: found the reason %d and %d requests", found, p.asked.Load())
	}
	p.clock.Add(time.Second)
	// The first use does not wait for the new keys.
	if found := p.open(p.statement(stolen)); found != 0 {
		t.Errorf("a statement has waited for newer keys: found the reason %d", found)
	}
	p.until("the key is forgotten", func() bool { return p.open(p.statement(stolen)) == InvalidToken })
	if found := p.open(p.statement(fresh)); found != 0 {
		t.Errorf("the new key: found the reason %d", found)
	}
}

// An attacker who blocks requests to a peer, so that a stolen key stays in use, can do that for at most an hour.
func TestKeysOfAPeerThatIsAwayAreUsedForAnHour(t *testing.T) {
	key := signing(t, "1")
	p := newPeered(t, key)
	if found := p.open(p.statement(key)); found != 0 {
		t.Fatalf("found the reason %d", found)
	}
	p.away.Store(true)
	p.clock.Add(keepPeer - time.Second)
	if found := p.open(p.statement(key)); found != 0 {
		t.Errorf("within the hour: found the reason %d", found)
	}
	p.clock.Add(time.Minute)
	if found := p.open(p.statement(key)); found != Unavailable {
		t.Errorf("after the hour: found the reason %d", found)
	}
	p.away.Store(false)
	p.clock.Add(time.Minute)
	p.until("the peer is back", func() bool { return p.open(p.statement(key)) == 0 })
}

// Statements with unknown key ids put no load on the peer.
func TestIDsOfKeysThatDoNotExistAreNoLoadForAPeer(t *testing.T) {
	key := signing(t, "1")
	p := newPeered(t, key)
	if found := p.open(p.statement(key)); found != 0 {
		t.Fatalf("found the reason %d", found)
	}
	stranger := signing(t, "")
	for range 100 {
		stranger.KeyID += "x"
		if found := p.open(p.statement(stranger)); found != InvalidToken {
			t.Fatalf("found the reason %d", found)
		}
	}
	if found := p.asked.Load(); found != 1 {
		t.Errorf("found %d requests to the peer, expected 1", found)
	}
}

// A service that has just started has no keys of its peers when their first answers come.
func TestAnswersToRequestsOfThisServiceAllWaitForTheKeysOfThePeer(t *testing.T) {
	key := signing(t, "one")
	p := newPeered(t, key)
	release := make(chan struct{})
	p.waits.Store(&release)
	const calls = 4 * maxWaiting
	statement, ended := p.statement(key), make(chan error, calls)
	for _, asked := range []bool{true, false} {
		for range calls {
			go func() {
				_, _, err := p.statements.Open(p.Context(), statement, kind, asked)
				ended <- err
			}()
		}
		if asked {
			continue
		}
		for range calls - maxWaiting {
			if err := <-ended; reasonOf(err) != Unavailable {
				t.Errorf("a statement that was not asked for: %v", err)
			}
		}
	}
	close(release)
	for range calls + maxWaiting {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
