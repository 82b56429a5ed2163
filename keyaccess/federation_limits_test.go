// SPDX-License-Identifier: Apache-2.0

package keyaccess_test

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/limit"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// Clients that are not peers cannot take places by sending slowly. The body of this request never ends, so the reply arrives only
// if the service does not read the body.
func TestNothingIsReadOfARequestWhoseSenderIsNotKnown(t *testing.T) {
	m := federate(t, 2, nil)
	stranger, err := issuer.NewKey(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	body, end := io.Pipe()
	defer func() { _ = end.Close() }() // nothing is written
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m[1].URL+federation.PathRewrap, body)
	if err != nil {
		t.Fatal(err)
	}
	claims, _ := m[0].statement(t, m[1])
	request.Header.Set(federation.HeaderStatement, forged(stranger, nil, claims))
	reply, err := m[1].Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusUnauthorized {
		t.Errorf("found status %d", reply.StatusCode)
	}
}

// After a start, a service does not know the keys of its peers yet, and reads them at their first requests.
func TestManyFirstRequestsOfAPeerWaitForItsKeys(t *testing.T) {
	const requests = 20
	m := federate(t, 2, nil)
	serve := *m[0].handler.Load()
	var slow http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Method == http.MethodGet && m[1].asked.Load() < requests && r.Context().Err() == nil { // the documents with the keys
			runtime.Gosched()
		}
		serve.ServeHTTP(w, r)
	})
	m[0].handler.Store(&slow)
	client, body := parseKey(t, privateKeys()[wrapping.RSA2048]), policyBody(plainPolicy)
	if found := askAll(t, client, m[:1]); found[0] != "0" { // now the first service knows the keys of the issuer of tokens
		t.Fatalf("found %q", found)
	}
	signed := m[0].sign(ask(t, client, body, m[1].share(t, shareOf(1), body, "1")))
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			response, err := m[0].rewrap(t, signed)
			if err != nil {
				t.Error(err)
			} else if found := outcome(t, client, response, nil); found[0] != "1" {
				t.Errorf("found %q, expected the share of the peer", found)
			}
		})
	}
	all.Wait()
}

// Two services whose places clients have taken must not wait for each other.
func TestPlacesOfClientsAreNoPlacesOfPeers(t *testing.T) {
	full := func(t *testing.T) *limit.Shedder {
		t.Helper()
		shedder, err := limit.NewShedder(limit.Load{InFlight: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shedder.Enter(t.Context()); err != nil { // and never finishes
			t.Fatal(err)
		}
		return shedder
	}
	client := parseKey(t, privateKeys()[wrapping.RSA2048])
	for name, c := range map[string]struct {
		set      func(s *setting)
		expected string
	}{
		"clients have taken all places": {func(s *setting) { s.shedder = full(t) }, "1"},
		"peers have taken all places":   {func(s *setting) { s.peerShedder = full(t) }, "the service has too many requests"},
	} {
		t.Run(name, func(t *testing.T) {
			m := federate(t, 2, func(of int, _ []*member, _ *federation.Config, s *setting) {
				if of == 1 {
					c.set(s)
				}
			})
			for range 5 { // more failures than the circuit breaker tolerates
				if found := askAll(t, client, m); found[0] != "0" || !strings.HasSuffix(found[1], c.expected) {
					t.Errorf("found %q", found)
				}
			}
		})
	}
}

func TestACallerHasTheLimitsOfEachService(t *testing.T) {
	m := federate(t, 2, func(of int, _ []*member, _ *federation.Config, s *setting) {
		if of == 1 {
			rates, err := limit.NewRates(limit.Config{Caller: limit.Rate{PerSecond: 0.00001, Burst: 1}})
			if err != nil {
				t.Fatal(err)
			}
			s.rates = rates
		}
	})
	client := parseKey(t, privateKeys()[wrapping.RSA2048])
	for _, expected := range []string{"1", "the service has too many requests"} {
		if found := askAll(t, client, m); found[0] != "0" || !strings.HasSuffix(found[1], expected) {
			t.Errorf("found %q, expected %q", found, expected)
		}
	}
}
