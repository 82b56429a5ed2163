// SPDX-License-Identifier: Apache-2.0

package keyaccess_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/limit"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// watcher is an Observer of one request at a time. Requests end after their replies, so tests wait for the outcome.
type watcher struct {
	began   chan keyaccess.Source
	ended   chan keyaccess.Outcome
	results chan keyaccess.Result
}

func newWatcher() *watcher {
	return &watcher{make(chan keyaccess.Source, 10), make(chan keyaccess.Outcome, 10), make(chan keyaccess.Result, 10)}
}

func (w *watcher) Began(from keyaccess.Source) { w.began <- from }
func (w *watcher) Ended(_ keyaccess.Source, outcome keyaccess.Outcome, _ time.Duration) {
	w.ended <- outcome
}
func (w *watcher) DataKey(result keyaccess.Result) { w.results <- result }

// post sends a request as plain JSON with the given header.
func (x *service) post(t *testing.T, header http.Header, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.URL+plainPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	reply, err := x.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close() // the outcome counts, not the reply
}

func TestEachRequestHasOneOutcome(t *testing.T) {
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	good := func(x *service) string { return x.sign(ask(t, client, body, wrap(t, wrapping.P256, dataKey, body))) }
	for name, c := range map[string]struct {
		setting func(*setting)
		send    func(*service)
		outcome keyaccess.Outcome
	}{
		"a good request by Connect": {nil, func(x *service) { _, _ = x.rewrap(t, good(x)) }, keyaccess.Answered},
		"a good request by gRPC":    {nil, func(x *service) { _, _ = x.rewrapGRPC(t, good(x)) }, keyaccess.Answered},
		"a good request in JSON":    {nil, func(x *service) { x.rewrapPlain(t, `{"signedRequestToken":"`+good(x)+`"}`) }, keyaccess.Answered},
		"no token":                  {nil, func(x *service) { x.post(t, http.Header{}, "{}") }, keyaccess.NoCredentials},
		"two tokens":                {nil, func(x *service) { x.post(t, http.Header{"Authorization": {"DPoP a", "DPoP b"}}, "{}") }, keyaccess.InvalidRequest},
		"a wrong token":             {nil, func(x *service) { x.post(t, http.Header{"Authorization": {"DPoP a.b.c"}}, "{}") }, keyaccess.InvalidToken},
		"a token without its proof": {nil, func(x *service) { x.post(t, http.Header{"Authorization": {"DPoP " + x.token}}, "{}") }, keyaccess.InvalidProof},
		"a signature by another key": {nil, func(x *service) {
			other, err := issuer.NewKey(jose.ES256)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = x.rewrap(t, signWith(other, "{}"))
		}, keyaccess.InvalidSignature},
		"a request that asks for nothing": {nil, func(x *service) { _, _ = x.rewrap(t, x.sign("{}")) }, keyaccess.InvalidRequest},
		"a body that is no JSON":          {nil, func(x *service) { x.rewrapPlain(t, "x") }, keyaccess.Unreadable},
		"a body that is too large, by Connect": {func(s *setting) { s.bodyBytes = 10 },
			func(x *service) { _, _ = x.rewrap(t, good(x)) }, keyaccess.Unreadable},
		"too many requests of a caller": {func(s *setting) { s.rates = ratesForOneCall(t) }, func(x *service) {
			x.rewrapPlain(t, "x")
			x.rewrapPlain(t, "x")
		}, keyaccess.RateLimited},
		"too many requests at one time": {func(s *setting) { s.shedder = occupied(t) }, func(x *service) { x.rewrapPlain(t, "x") }, keyaccess.Shed},
		"too little time": {func(s *setting) { s.time = time.Nanosecond },
			func(x *service) { _, _ = x.rewrap(t, good(x)) }, keyaccess.DeadlineExceeded},
		"a defect": {func(s *setting) { s.authorizer = defective{} }, func(x *service) { _, _ = x.rewrap(t, good(x)) }, keyaccess.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			seen := newWatcher()
			s := setting{observer: seen}
			if c.setting != nil {
				c.setting(&s)
			}
			x := start(t, s)
			c.send(x)
			var outcomes []keyaccess.Outcome
			for len(outcomes) == 0 || len(outcomes) < len(seen.began) {
				outcomes = append(outcomes, <-seen.ended)
			}
			if last := outcomes[len(outcomes)-1]; last != c.outcome || !slices.Contains(keyaccess.Outcomes, last) {
				t.Errorf("found %v, expected %s at the end", outcomes, c.outcome)
			}
			if from := <-seen.began; from != keyaccess.FromClient {
				t.Errorf("found a request of a %s", from)
			}
		})
	}
}

// ratesForOneCall returns rates that permit one request.
func ratesForOneCall(t *testing.T) *limit.Rates {
	t.Helper()
	rates, err := limit.NewRates(limit.Config{Caller: limit.Rate{PerSecond: 0.00001, Burst: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return rates
}

// occupied returns a shedder that has no place.
func occupied(t *testing.T) *limit.Shedder {
	t.Helper()
	shedder, err := limit.NewShedder(limit.Load{InFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shedder.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	return shedder
}

// denying is an Authorizer that permits nothing.
type denying struct{}

func (denying) Permits(context.Context, caller.Caller, tdfpolicy.Object) bool { return false }

func (denying) Revision() uint64 { return 0 }

func (denying) Authorize(context.Context, caller.Caller, tdfpolicy.Object) error {
	return errors.New("nothing is permitted")
}

func TestEachDataKeyHasOneResult(t *testing.T) {
	client, dataKey, body := parseKey(t, privateKeys()[wrapping.P256]), newDataKey(), policyBody(plainPolicy)
	for name, c := range map[string]struct {
		rules  tdfpolicy.Authorizer
		change func(*kas.KeyAccess)
		result keyaccess.Result
	}{
		"permitted":                {&tdfpolicy.Rules{AllowAllAuthenticated: true}, nil, keyaccess.Released},
		"not permitted":            {denying{}, nil, keyaccess.Denied},
		"of an unknown type":       {&tdfpolicy.Rules{AllowAllAuthenticated: true}, func(o *kas.KeyAccess) { o.KeyType = "remote" }, keyaccess.Unsupported},
		"with another binding":     {&tdfpolicy.Rules{AllowAllAuthenticated: true}, func(o *kas.KeyAccess) { o.PolicyBinding.Hash = "AAAA" }, keyaccess.Invalid},
		"with an unknown key's id": {&tdfpolicy.Rules{AllowAllAuthenticated: true}, func(o *kas.KeyAccess) { o.Kid = "nobody" }, keyaccess.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			seen := newWatcher()
			x := start(t, setting{authorizer: c.rules, observer: seen})
			object := wrap(t, wrapping.P256, dataKey, body)
			if c.change != nil {
				c.change(object)
			}
			if _, err := x.rewrap(t, x.sign(ask(t, client, body, object))); err != nil {
				t.Fatal(err)
			}
			<-seen.ended
			if found := <-seen.results; found != c.result || len(seen.results) > 0 || !slices.Contains(keyaccess.Results, found) {
				t.Errorf("found %s, expected %s alone", found, c.result)
			}
		})
	}
}
