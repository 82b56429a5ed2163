// SPDX-License-Identifier: Apache-2.0

package keyaccess_test

import (
	"bytes"
	"crypto"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// member is a service of a federation.
type member struct {
	*service
	key crypto.Signer
	log *written
	// asked is the number of requests of peers, and http2 is how many of them used HTTP/2.
	asked, http2 atomic.Int64
	// instead answers requests of peers in place of the service, if it is not nil.
	instead atomic.Pointer[http.HandlerFunc]
}

// federate starts services that are peers of each other. change changes the configuration of one.
func federate(t *testing.T, n int, change func(of int, members []*member, c *federation.Config, s *setting)) []*member {
	t.Helper()
	from := issuer.Start(t, issuer.Options{Audience: audience})
	members := make([]*member, n)
	for i := range members {
		key, err := issuer.NewKey(jose.ES256)
		if err != nil {
			t.Fatal(err)
		}
		members[i] = &member{service: listen(t, from), key: key, log: &written{}}
	}
	for i, m := range members {
		config := federation.Config{
			URL: m.URL, Keys: []crypto.Signer{m.key}, Retry: time.Minute, Log: slog.New(slog.NewTextHandler(m.log, nil)),
		}
		for j, other := range members {
			if i != j {
				config.Peers = append(config.Peers, federation.Peer{
					Peer: caller.Peer{URL: other.URL, Authorities: other.authorities()}, Timeout: time.Minute,
					Issuers: []caller.Issuer{{URL: from.URL, Audiences: []string{audience}, Authorities: from.Authorities(), PlainBearer: true}},
				})
			}
		}
		s := setting{log: m.log}
		if change != nil {
			change(i, members, &config, &s)
		}
		peers, err := federation.New(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(peers.Close)
		s.peers = peers
		m.serve(t, s)
		m.watch()
	}
	return members
}

// authorities returns the certificate of the service in PEM.
func (x *service) authorities() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.Certificate().Raw})
}

// watch counts requests of peers.
func (m *member) watch() {
	serve := *m.handler.Load()
	var counting http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == federation.PathRewrap {
			m.asked.Add(1)
			if r.ProtoMajor == 2 {
				m.http2.Add(1)
			}
			if instead := m.instead.Load(); instead != nil {
				(*instead)(w, r)
				return
			}
		}
		serve.ServeHTTP(w, r)
	})
	m.handler.Store(&counting)
}

// answer makes the service answer requests of peers with another handler, or as usual again with nil.
func (m *member) answer(instead http.HandlerFunc) {
	if instead == nil {
		m.instead.Store(nil)
		return
	}
	m.instead.Store(&instead)
}

func failing(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }

// hanging never answers.
func hanging(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// share returns a share of a file's key, wrapped for a service.
func (m *member) share(t testing.TB, share, body, name string) *kas.KeyAccess {
	t.Helper()
	object := wrap(t, wrapping.P256, []byte(share), body)
	object.KasUrl, object.SplitId = m.URL, name
	return object
}

// shares of a file's key that a test can distinguish.
func shareOf(i int) string { return strings.Repeat(string(rune('0'+i)), 32) }

// outcome returns what the client has got for each data key: the first byte of it, or the text of the failure.
func outcome(t testing.TB, client wrapping.Key, response *kas.RewrapResponse, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, policy := range response.GetResponses() {
		for _, result := range policy.GetResults() {
			if wrapped := result.GetKasWrappedKey(); result.GetStatus() == "permit" {
				found = append(found, string(opened(t, client, response, wrapped)[:1]))
			} else {
				found = append(found, result.GetError())
			}
		}
	}
	return found
}

// askAll asks the first service for a share of each service, in the order of the services.
func askAll(t testing.TB, client wrapping.Key, members []*member) []string {
	t.Helper()
	body := policyBody(plainPolicy)
	var objects []*kas.KeyAccess
	for i, m := range members {
		objects = append(objects, m.share(t, shareOf(i), body, fmt.Sprint(i)))
	}
	response, err := members[0].rewrap(t, members[0].sign(ask(t, client, body, objects...)))
	return outcome(t, client, response, err)
}

func TestSharesOfSeveralServicesComeInTheOrderOfTheRequest(t *testing.T) {
	m := federate(t, 3, nil)
	client, body := parseKey(t, privateKeys()[wrapping.RSA2048]), policyBody(plainPolicy)
	slash := m[1].share(t, shareOf(6), body, "6")
	slash.KasUrl = strings.ToUpper(m[1].URL[:12]) + m[1].URL[12:] + "/kas"
	signed := m[0].sign(ask(t, client, body,
		m[2].share(t, shareOf(1), body, "1"), m[0].share(t, shareOf(2), body, "2"), m[1].share(t, shareOf(3), body, "3"), m[2].share(t, shareOf(4), body, "4"),
		m[0].share(t, shareOf(5), body, "5"), slash))
	for range 2 {
		response, err := m[0].rewrap(t, signed)
		if found := strings.Join(outcome(t, client, response, err), ""); found != "123456" {
			t.Errorf("found the shares %s, expected 123456", found)
		}
	}
	for i, expected := range []int64{0, 2, 2} {
		if m[i].asked.Load() != expected || m[i].http2.Load() != expected {
			t.Errorf("service %d: found %d requests, %d of them by HTTP/2, expected %d", i, m[i].asked.Load(), m[i].http2.Load(), expected)
		}
	}
	for _, x := range m {
		if strings.Contains(x.log.String(), "eyJ") || strings.Contains(x.log.String(), shareOf(1)) {
			t.Errorf("the log has a part of a request: %s", x.log)
		}
	}
}

// After three failures, the service is not asked any more.
func TestAServiceThatDoesNotWorkCostsOnlyItsShares(t *testing.T) {
	var endings sync.Map
	m := federate(t, 3, func(of int, _ []*member, c *federation.Config, _ *setting) {
		if of == 0 {
			c.Observe = func(peer string, ended federation.Ending, took time.Duration) {
				count, _ := endings.LoadOrStore(peer+" "+string(ended), &atomic.Int64{})
				count.(*atomic.Int64).Add(1)
			}
		}
	})
	client := parseKey(t, privateKeys()[wrapping.RSA2048])
	m[2].answer(failing)
	for i := range 5 {
		expected := "rpc error: code = Unavailable desc = " + m[2].URL + ": the service gave an answer that is not valid"
		if i >= 3 {
			expected = "rpc error: code = Unavailable desc = " + m[2].URL + ": the service did not answer lately, and is not asked for now"
		}
		if found := askAll(t, client, m); fmt.Sprint(found) != fmt.Sprint([]string{"0", "1", expected}) {
			t.Errorf("request %d: found %q", i, found)
		}
	}
	if found := m[2].asked.Load(); found != 3 {
		t.Errorf("found %d requests to the service that does not work, expected 3", found)
	}
	for ending, expected := range map[string]int64{m[1].URL + " answered": 5, m[2].URL + " failed": 3, m[2].URL + " not asked": 2} {
		if count, ok := endings.Load(ending); !ok || count.(*atomic.Int64).Load() != expected {
			t.Errorf("%s: found %v, expected %d", ending, count, expected)
		}
	}
	if log := m[0].log.String(); strings.Count(log, "gets no requests for now") != 1 || strings.Count(log, "has not answered") != 3 {
		t.Errorf("found the log %s", log)
	}
}

// Each of two peers answers only after the other one was asked.
func TestPeersAreAskedAtTheSameTime(t *testing.T) {
	m := federate(t, 3, nil)
	var both sync.WaitGroup
	both.Add(2)
	for _, x := range m[1:] {
		serve := *x.handler.Load()
		x.answer(func(w http.ResponseWriter, r *http.Request) {
			both.Done()
			both.Wait()
			x.answer(nil)
			serve.ServeHTTP(w, r)
		})
	}
	if found := strings.Join(askAll(t, parseKey(t, privateKeys()[wrapping.RSA2048]), m), ""); found != "012" {
		t.Errorf("found %q", found)
	}
}

func TestAServiceThatWorksAgainIsAskedAgain(t *testing.T) {
	m := federate(t, 2, func(_ int, _ []*member, c *federation.Config, _ *setting) { c.Retry = time.Second })
	client := parseKey(t, privateKeys()[wrapping.RSA2048])
	m[1].answer(failing)
	for tries := 0; !strings.Contains(askAll(t, client, m)[1], "is not asked for now"); tries++ {
		if tries == 1000 {
			t.Fatal("the service is still asked after 1,000 failures")
		}
	}
	m[1].answer(nil)
	tick, late := time.NewTicker(50*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for askAll(t, client, m)[1] != "1" {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the service is not asked again within a minute")
		}
	}
	if log := m[0].log.String(); !strings.Contains(log, "gets requests again") {
		t.Errorf("found the log %s", log)
	}
}

func TestAServiceThatHangsIsNotWaitedForLongerThanItsTime(t *testing.T) {
	m := federate(t, 3, func(_ int, m []*member, c *federation.Config, _ *setting) {
		for i := range c.Peers {
			if c.Peers[i].URL == m[2].URL {
				c.Peers[i].Timeout = 100 * time.Millisecond
			}
		}
	})
	m[2].answer(hanging)
	found := askAll(t, parseKey(t, privateKeys()[wrapping.RSA2048]), m)
	if found[0] != "0" || found[1] != "1" || !strings.Contains(found[2], "Unavailable") {
		t.Errorf("found %q", found)
	}
}

func TestOneOfTheServicesWithTheSameShareIsEnough(t *testing.T) {
	client, body := parseKey(t, privateKeys()[wrapping.RSA2048]), policyBody(plainPolicy)
	for name, from := range map[string]int{"of a peer": 1, "of the service that is asked": 0} {
		t.Run(name, func(t *testing.T) {
			// The peers may take an hour, so the test ends only if the service does not wait for the peer that hangs.
			m := federate(t, 3, func(_ int, _ []*member, c *federation.Config, _ *setting) {
				for i := range c.Peers {
					c.Peers[i].Timeout = federation.MaxTimeout
				}
			})
			m[2].answer(hanging)
			for range 4 { // more than the circuit breaker tolerates: canceled requests do not count as failures of a peer
				response, err := m[0].rewrap(t, m[0].sign(ask(t, client, body, m[2].share(t, shareOf(1), body, "a"), m[from].share(t, shareOf(1), body, "a"))))
				found := outcome(t, client, response, err)
				if found[1] != "1" || !strings.Contains(found[0], "another service has released this share") {
					t.Errorf("found %q", found)
				}
			}
		})
	}
}

func TestSharesThatAreAllNeededAreAllWaitedFor(t *testing.T) {
	m := federate(t, 3, nil)
	client, body := parseKey(t, privateKeys()[wrapping.RSA2048]), policyBody(plainPolicy)
	other := make(chan struct{})
	slow := *m[2].handler.Load()
	m[2].answer(func(w http.ResponseWriter, r *http.Request) {
		<-other // a peer that has answered before
		m[2].answer(nil)
		slow.ServeHTTP(w, r)
	})
	quick := *m[1].handler.Load()
	m[1].answer(func(w http.ResponseWriter, r *http.Request) {
		m[1].answer(nil)
		quick.ServeHTTP(w, r)
		close(other)
	})
	// The slow service has one share that the quick one has as well, and one that nobody else has.
	response, err := m[0].rewrap(t, m[0].sign(ask(t, client, body, m[2].share(t, shareOf(1), body, "a"), m[1].share(t, shareOf(1), body, "a"), m[2].share(t, shareOf(2), body, "b"))))
	// The reply of the slow service may still arrive before the reply of the quick one, which then adds nothing.
	found := outcome(t, client, response, err)
	if found[0] != "1" || found[1] != "1" && !strings.Contains(found[1], "another service has released this share") || found[2] != "2" {
		t.Errorf("found %q, expected 1, 1 and 2", found)
	}
}

func TestRulesOfEachServiceDecideAboutItsShares(t *testing.T) {
	const secret = "https://example.com/attr/level/value/secret"
	m := federate(t, 3, func(of int, _ []*member, _ *federation.Config, s *setting) {
		if of == 1 {
			s.rules = tdfpolicy.Rules{Attributes: []tdfpolicy.Rule{{Attribute: secret, Claim: []string{"clearance"}, AnyOf: []string{"secret"}}}}
		}
	})
	if found := askAll(t, parseKey(t, privateKeys()[wrapping.RSA2048]), m); fmt.Sprint(found) != fmt.Sprint([]string{"0", forbidden, "2"}) {
		t.Errorf("found %q", found)
	}
	if log := m[1].log.String(); !strings.Contains(log, "denied") || !strings.Contains(log, "subject=alice") {
		t.Errorf("found the log %s", log)
	}
}

func TestAClientWithAnECKeyGetsTheSharesOfOneService(t *testing.T) {
	m := federate(t, 3, nil)
	client, body := parseKey(t, privateKeys()[wrapping.P256]), policyBody(plainPolicy)
	response, err := m[0].rewrap(t, m[0].sign(ask(t, client, body, m[1].share(t, shareOf(1), body, ""), m[1].share(t, shareOf(2), body, ""))))
	if found := strings.Join(outcome(t, client, response, err), ""); found != "12" {
		t.Errorf("found %q, expected 12", found)
	}
	if found := askAll(t, client, m); found[0] != "0" || !strings.Contains(found[1], "to which only one service can wrap") || !strings.Contains(found[2], "Unavailable") {
		t.Errorf("found %q", found)
	}
	if m[2].asked.Load() != 0 {
		t.Error("a service was asked whose answer would be of no use")
	}
}

func TestATokenThatIsBoundToNoKeyIsNotForwarded(t *testing.T) {
	m := federate(t, 2, func(_ int, _ []*member, _ *federation.Config, s *setting) { s.plainBearer = true })
	client, body := parseKey(t, privateKeys()[wrapping.RSA2048]), policyBody(plainPolicy)
	found := m[0].plain(t, client, body, m[0].share(t, shareOf(0), body, "a"), m[1].share(t, shareOf(1), body, "b"))
	if found[0] != "0" || !strings.Contains(found[1], "bound to no key") || m[1].asked.Load() != 0 {
		t.Errorf("found %q", found)
	}
}

func TestResultsForSeveralServicesHaveTheXOROfTheKey(t *testing.T) {
	m := federate(t, 3, nil)
	client, body, dataKey := parseKey(t, privateKeys()[wrapping.MLKEM768]), policyBody(plainPolicy), newDataKey()
	shares := [][]byte{newDataKey(), newDataKey(), bytes.Clone(dataKey)}
	for i := range dataKey {
		shares[2][i] ^= shares[0][i] ^ shares[1][i]
	}
	var objects []*kas.KeyAccess
	for i, x := range m {
		objects = append(objects, x.share(t, string(shares[i]), body, fmt.Sprint(i)))
	}
	response, err := m[1].rewrap(t, m[1].sign(ask(t, client, body, objects...)))
	if err != nil {
		t.Fatal(err)
	}
	joined := make([]byte, len(dataKey))
	for _, result := range response.GetResponses()[0].GetResults() {
		for i, octet := range opened(t, client, response, result.GetKasWrappedKey()) {
			joined[i] ^= octet
		}
	}
	if !bytes.Equal(joined, dataKey) {
		t.Error("the shares do not make the key")
	}
}

// plain asks with a token that is bound to no key.
func (x *service) plain(t testing.TB, client wrapping.Key, body string, objects ...*kas.KeyAccess) []string {
	t.Helper()
	in := connect.NewRequest(&kas.RewrapRequest{SignedRequestToken: x.sign(ask(t, client, body, objects...))})
	in.Header().Set("Authorization", "Bearer "+x.issuer.Token(x.issuer.Claims("alice", nil)))
	out, err := connect.NewClient[kas.RewrapRequest, kas.RewrapResponse](x.Client(), x.URL+procedure).CallUnary(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return outcome(t, client, out.Msg, nil)
}
