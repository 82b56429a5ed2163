// SPDX-License-Identifier: Apache-2.0

package keyaccess_test

import (
	"io"
	"net/http"
	"strings"
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
