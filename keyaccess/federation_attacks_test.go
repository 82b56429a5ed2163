// SPDX-License-Identifier: Apache-2.0

package keyaccess_test

import (
	"crypto"
	"crypto/sha256"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// forged signs a statement with the key of a service that the service itself would never sign.
func forged(key crypto.Signer, header, claims map[string]any) string {
	all := map[string]any{"typ": "key-access-forward+jwt", "kid": issuer.Thumbprint(key.Public())}
	maps.Copy(all, header)
	for name, value := range all {
		if value == nil {
			delete(all, name)
		}
	}
	return issuer.Sign(jose.JSONWebKey{Key: key, Algorithm: string(jose.ES256)}, all, claims)
}

// statement returns a good statement of the first service for the second one, and a request that the client has made.
func (m *member) statement(t testing.TB, to *member, objects ...*kas.KeyAccess) (claims map[string]any, signed string) {
	t.Helper()
	header := http.Header{}
	m.credentials(header, procedure)
	client, body := parseKey(t, privateKeys()[wrapping.RSA2048]), policyBody(plainPolicy)
	if len(objects) == 0 {
		objects = []*kas.KeyAccess{to.share(t, shareOf(1), body, "")}
	}
	signed = m.sign(ask(t, client, body, objects...))
	return map[string]any{
		"iss": m.URL, "aud": to.URL, "jti": "1", "iat": time.Now().Unix(), "via": []string{m.URL}, "objects": []int{0}, "path": procedure,
		"authorization": header.Get("Authorization"), "proof": header.Get("DPoP"), "request_sha256": digest(signed),
	}, signed
}

func digest(signed string) []byte {
	sum := sha256.Sum256([]byte(signed))
	return sum[:]
}

// forward sends a request with statements to a service.
func (m *member) forward(t testing.TB, signed string, statements ...string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.URL+federation.PathRewrap, strings.NewReader(signed))
	if err != nil {
		t.Fatal(err)
	}
	request.Header[federation.HeaderStatement] = statements
	reply, err := m.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(body)
}

// TestWhatAMaliciousServiceForwardsIsRefused tests attacks by a peer, and by services that are not peers.
func TestWhatAMaliciousServiceForwardsIsRefused(t *testing.T) {
	m := federate(t, 3, nil)
	stranger, err := issuer.NewKey(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	mallory := &service{issuer: m[0].issuer, prover: issuer.Prover{Key: stranger, Algorithm: jose.ES256}, Server: m[0].Server}
	for name, c := range map[string]struct {
		header map[string]any
		claims map[string]any
		key    crypto.Signer
		signed string // instead of the request of the client
		status int
		part   string
	}{
		"as it should be":                              {status: 200},
		"by a key of nobody":                           {key: stranger, status: 401, part: "with a key that the peer does not publish"},
		"by a key of nobody with the id of a key":      {key: stranger, header: map[string]any{"kid": issuer.Thumbprint(m[0].key.Public())}, status: 401, part: "wrong signature"},
		"with a key in the header":                     {header: map[string]any{"jwk": json.RawMessage(`{"kty":"EC"}`)}, status: 401, part: "brings a key of its own"},
		"without the id of a key":                      {header: map[string]any{"kid": nil}, status: 401, part: "has no kid"},
		"a reply as a request":                         {header: map[string]any{"typ": "key-access-result+jwt"}, status: 401, part: "has another type"},
		"of a service that is no peer":                 {claims: map[string]any{"iss": "https://example.com"}, status: 401, part: "not a peer of this one"},
		"in the name of another peer":                  {claims: map[string]any{"iss": m[2].URL, "via": []string{m[2].URL}}, status: 401, part: "with a key that the peer does not publish"},
		"for another service":                          {claims: map[string]any{"aud": m[2].URL}, status: 400, part: "is for another service"},
		"of two minutes ago":                           {claims: map[string]any{"iat": time.Now().Add(-2 * time.Minute).Unix()}, status: 400, part: "of another time"},
		"of a later time":                              {claims: map[string]any{"iat": time.Now().Add(2 * time.Minute).Unix()}, status: 400, part: "of another time"},
		"without an id":                                {claims: map[string]any{"jti": ""}, status: 400, part: "is for another service"},
		"without a way":                                {claims: map[string]any{"via": []string{}}, status: 400, part: "does not end its way with the peer"},
		"with a way that ends elsewhere":               {claims: map[string]any{"via": []string{m[0].URL, m[2].URL}}, status: 400, part: "does not end its way with the peer"},
		"in a loop":                                    {claims: map[string]any{"via": []string{m[1].URL, m[0].URL}}, status: 400, part: "loop"},
		"by too many services":                         {claims: map[string]any{"via": []string{m[2].URL, "https://example.com", m[0].URL}}, status: 400, part: "came by way of 3 services, expected at most 2"},
		"from the client of a service that is no peer": {claims: map[string]any{"via": []string{"https://example.com", m[0].URL}}, status: 400, part: "began at a service that is not a peer"},
		"from the client of another service":           {claims: map[string]any{"via": []string{m[2].URL, m[0].URL}}, status: 401, part: "the proof is for another URL"},
		"with the proof of another request":            {claims: map[string]any{"path": plainPath}, status: 401, part: "the proof is for another URL"},
		"with a proof for another purpose":             {claims: map[string]any{"path": "/login"}, status: 400, part: "has a proof for another path"},
		"without a proof":                              {claims: map[string]any{"proof": ""}, status: 401, part: "the proof"},
		"with a token that is bound to no key":         {claims: map[string]any{"authorization": "Bearer " + m[0].issuer.Token(m[0].issuer.Claims("alice", nil)), "proof": ""}, status: 400, part: "DPoP"},
		"with a request that the client has not made":  {signed: mallory.sign("{}"), status: 401, part: "not of the key that the DPoP proof is signed with"},
		"for nothing":                                  {claims: map[string]any{"objects": []int{}}, status: 400, part: "asks for nothing"},
		"for a data key before the first":              {claims: map[string]any{"objects": []int{-1}}, status: 400, part: "asks for nothing"},
		"for a data key twice":                         {claims: map[string]any{"objects": []int{0, 0}}, status: 400, part: "in another order"},
		"for a data key that there is not":             {claims: map[string]any{"objects": []int{1}}, status: 400, part: "does not have"},
	} {
		t.Run(name, func(t *testing.T) {
			claims, signed := m[0].statement(t, m[1])
			if c.signed != "" {
				signed, claims["request_sha256"] = c.signed, digest(c.signed)
			}
			maps.Copy(claims, c.claims)
			if c.key == nil {
				c.key = m[0].key
			}
			status, text := m[1].forward(t, signed, forged(c.key, c.header, claims))
			if status != c.status || !strings.Contains(text, c.part) {
				t.Errorf("found status %d: %s, expected %d and %q", status, text, c.status, c.part)
			}
		})
	}
	good := func() (statement, signed string) {
		claims, signed := m[0].statement(t, m[1])
		return forged(m[0].key, nil, claims), signed
	}
	first, signed := good()
	second, other := good()
	large := strings.Repeat("a", 1<<20+1)
	claims, _ := m[0].statement(t, m[1])
	claims["request_sha256"] = digest(large)
	for name, c := range map[string]struct {
		signed     string
		statements []string
		status     int
	}{
		"without a statement":         {signed, nil, 400},
		"with two statements":         {signed, []string{first, first}, 400},
		"with no statement":           {signed, []string{"a.b.c"}, 401},
		"with a large statement":      {signed, []string{strings.Repeat("a", 56<<10+1)}, 400},
		"with a request for another":  {signed, []string{second}, 400},
		"with a request that is less": {other[:len(other)-1], []string{first}, 400},
		"with a large request":        {large, []string{forged(m[0].key, nil, claims)}, 413},
	} {
		if status, text := m[1].forward(t, c.signed, c.statements...); status != c.status {
			t.Errorf("%s: found status %d: %s, expected %d", name, status, text, c.status)
		}
	}
}

func TestAStatementCannotBeUsedTwice(t *testing.T) {
	m := federate(t, 2, nil)
	claims, signed := m[0].statement(t, m[1])
	first := forged(m[0].key, nil, claims)
	if status, text := m[1].forward(t, signed, first); status != http.StatusOK {
		t.Fatalf("found status %d: %s", status, text)
	}
	claims["jti"] = "2"
	for name, statement := range map[string]string{"as it was": first, "with another id": forged(m[0].key, nil, claims)} {
		if status, text := m[1].forward(t, signed, statement); status != http.StatusUnauthorized || !strings.Contains(text, "used before") {
			t.Errorf("%s: found status %d: %s", name, status, text)
		}
	}
}

// TestAPeerCannotAskForTheDataKeysOfOthers tests two objects that name another service. Both services have the key that unwraps them.
func TestAPeerCannotAskForTheDataKeysOfOthers(t *testing.T) {
	m := federate(t, 2, nil)
	body := policyBody(plainPolicy)
	own, unknown := m[0].share(t, shareOf(1), body, ""), m[1].share(t, shareOf(1), body, "")
	unknown.KasUrl = ""
	claims, request := m[0].statement(t, m[1], own, unknown)
	claims["objects"] = []int{0, 1}
	status, text := m[1].forward(t, request, forged(m[0].key, nil, claims))
	signed, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.ES256})
	if status != http.StatusOK || err != nil {
		t.Fatalf("found status %d: %s", status, text)
	}
	payload, err := signed.Verify(m[1].key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if found := string(payload); strings.Contains(found, "wrapped") || !strings.Contains(found, "would go there again") || !strings.Contains(found, "no peer is known") {
		t.Errorf("found %s", found)
	}
}

// TestWhatAMaliciousPeerAnswersIsNotUsed tests replies of a peer that do not match the request, or that come from somebody else.
func TestWhatAMaliciousPeerAnswersIsNotUsed(t *testing.T) {
	stranger, err := issuer.NewKey(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	client := parseKey(t, privateKeys()[wrapping.RSA2048])
	result := func(object int) map[string]any { return map[string]any{"object": object, "wrapped": []byte("AAAA")} }
	type change struct {
		header map[string]any
		claims map[string]any
		key    crypto.Signer
	}
	asIs := func(statement string) string { return statement }
	for name, c := range map[string]struct {
		change func(m []*member) change
		send   func(statement string) string
		used   bool
	}{
		"as it should be":       {func([]*member) change { return change{} }, asIs, true},
		"without a signature":   {func([]*member) change { return change{} }, func(s string) string { return s[:strings.LastIndexByte(s, '.')+1] }, false},
		"no statement":          {func([]*member) change { return change{} }, func(string) string { return `{"results":[{"object":1,"wrapped":"AAAA"}]}` }, false},
		"a changed result":      {func([]*member) change { return change{} }, func(s string) string { return strings.Replace(s, ".", ".e30", 1) }, false},
		"a reply that is large": {func([]*member) change { return change{} }, func(s string) string { return s + strings.Repeat(" ", 1<<20) }, false},
		"by a key of nobody":    {func([]*member) change { return change{key: stranger} }, asIs, false},
		"of another peer":       {func(m []*member) change { return change{key: m[2].key, claims: map[string]any{"iss": m[2].URL}} }, asIs, false},
		"of another kind":       {func([]*member) change { return change{header: map[string]any{"typ": "key-access-forward+jwt"}} }, asIs, false},
		"for another service":   {func(m []*member) change { return change{claims: map[string]any{"aud": m[2].URL}} }, asIs, false},
		"for another request":   {func([]*member) change { return change{claims: map[string]any{"jti": "1"}} }, asIs, false},
		"of two minutes ago": {func([]*member) change {
			return change{claims: map[string]any{"iat": time.Now().Add(-2 * time.Minute).Unix()}}
		}, asIs, false},
		"without results":            {func([]*member) change { return change{claims: map[string]any{"results": []any{}}} }, asIs, false},
		"with results for others":    {func([]*member) change { return change{claims: map[string]any{"results": []any{result(0)}}} }, asIs, false},
		"with more than it is asked": {func([]*member) change { return change{claims: map[string]any{"results": []any{result(0), result(1)}}} }, asIs, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := federate(t, 3, nil)
			wanted := c.change(m)
			m[1].answer(func(w http.ResponseWriter, r *http.Request) {
				signed, err := jose.ParseSignedCompact(r.Header.Get(federation.HeaderStatement), []jose.SignatureAlgorithm{jose.ES256})
				if err != nil {
					t.Error(err)
					return
				}
				asked := map[string]any{}
				if err := json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &asked); err != nil {
					t.Error(err)
				}
				claims := map[string]any{"iss": m[1].URL, "aud": m[0].URL, "jti": asked["jti"], "iat": time.Now().Unix(), "results": []any{map[string]any{"object": 1, "error": "rpc error: code = Internal desc = used"}}}
				maps.Copy(claims, wanted.claims)
				header := map[string]any{"typ": "key-access-result+jwt"}
				maps.Copy(header, wanted.header)
				if wanted.key == nil {
					wanted.key = m[1].key
				}
				_, _ = io.WriteString(w, c.send(forged(wanted.key, header, claims))) // if this fails, the test fails later
			})
			found := askAll(t, client, m[:2])
			expected := "rpc error: code = Unavailable desc = " + m[1].URL + ": the service gave an answer that is not valid"
			if c.used {
				expected = "rpc error: code = Internal desc = used"
			}
			if found[0] != "0" || found[1] != expected {
				t.Errorf("found %q, expected %q", found, expected)
			}
		})
	}
}

func TestARedirectTakesNothingElsewhere(t *testing.T) {
	m := federate(t, 3, nil)
	m[1].answer(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, m[2].URL+federation.PathRewrap, http.StatusTemporaryRedirect)
	})
	if found := askAll(t, parseKey(t, privateKeys()[wrapping.RSA2048]), m[:2]); !strings.Contains(found[1], "Unavailable") || m[2].asked.Load() != 0 {
		t.Errorf("found %q and %d requests at the other service", found, m[2].asked.Load())
	}
}

func TestRoutesThatAreALoopEnd(t *testing.T) {
	const elsewhere = "https://elsewhere.example"
	m := federate(t, 2, func(_ int, _ []*member, c *federation.Config, _ *setting) {
		c.Peers[0].Routes = []string{elsewhere} // each of the two asks the other
		c.Depth = federation.MaxDepth
	})
	client, body := parseKey(t, privateKeys()[wrapping.RSA2048]), policyBody(plainPolicy)
	object := m[1].share(t, shareOf(1), body, "")
	object.KasUrl = elsewhere
	response, err := m[0].rewrap(t, m[0].sign(ask(t, client, body, object)))
	found := outcome(t, client, response, err)
	if !strings.Contains(found[0], "the request came by way of "+m[0].URL+", and would go there again") || m[0].asked.Load() != 0 || m[1].asked.Load() != 1 {
		t.Errorf("found %q, and %d and %d requests", found, m[0].asked.Load(), m[1].asked.Load())
	}
}

// TestARequestGoesByAsManyServicesAsItMay tests a chain: each service reaches all further services through the next one.
func TestARequestGoesByAsManyServicesAsItMay(t *testing.T) {
	for depth, expected := range map[int]string{3: "1", 2: "the request came by way of 2 services, expected at most 1"} {
		m := federate(t, 4, func(of int, m []*member, c *federation.Config, _ *setting) {
			c.Depth = depth
			kept := c.Peers[:0]
			for _, peer := range c.Peers {
				switch {
				case of+1 < len(m) && peer.URL == m[of+1].URL:
					for _, further := range m[of+2:] {
						peer.Routes = append(peer.Routes, further.URL)
					}
				case of+1 < len(m) && (of+2 < len(m) && peer.URL == m[of+2].URL || peer.URL == m[len(m)-1].URL):
					continue // this service is reached by a route
				}
				kept = append(kept, peer)
			}
			c.Peers = kept
		})
		client, body := parseKey(t, privateKeys()[wrapping.RSA2048]), policyBody(plainPolicy)
		response, err := m[0].rewrap(t, m[0].sign(ask(t, client, body, m[3].share(t, shareOf(1), body, ""))))
		if found := outcome(t, client, response, err); found[0] != expected && (depth == 3 || !strings.HasSuffix(found[0], expected)) {
			t.Errorf("depth %d: found %q, expected %q", depth, found, expected)
		}
	}
}

// A peer must not make the whole response unreadable: texts of the protocol are UTF-8.
func TestALongTextOfAPeerIsCutBetweenLetters(t *testing.T) {
	m := federate(t, 2, nil)
	for _, text := range []string{strings.Repeat("é", 400), "x" + strings.Repeat("é", 400), "rpc error: code = X" + strings.Repeat("é", 400), "rpc error: code = XY" + strings.Repeat("é", 400)} {
		m[1].answer(func(w http.ResponseWriter, r *http.Request) {
			signed, err := jose.ParseSignedCompact(r.Header.Get(federation.HeaderStatement), []jose.SignatureAlgorithm{jose.ES256})
			if err != nil {
				t.Error(err)
				return
			}
			asked := map[string]any{}
			if err := json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &asked); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, forged(m[1].key, map[string]any{"typ": "key-access-result+jwt"}, map[string]any{ // if this fails, the test fails later
				"iss": m[1].URL, "aud": m[0].URL, "jti": asked["jti"], "iat": time.Now().Unix(), "results": []any{map[string]any{"object": 1, "error": text}},
			}))
		})
		if found := askAll(t, parseKey(t, privateKeys()[wrapping.RSA2048]), m); found[0] != "0" || !strings.HasSuffix(found[1], "é") || len(found[1]) > 400 {
			t.Errorf("found %q", found)
		}
	}
}
