// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
)

func TestPeersThatStayKeepWhatIsKnownOfThem(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	peer := func(url string, routes ...string) Peer {
		return Peer{Peer: caller.Peer{URL: url}, Routes: routes, Issuers: []caller.Issuer{{URL: "https://idp.example", Audiences: []string{"x"}}}}
	}
	p, err := New(Config{URL: "https://a.example", Keys: []crypto.Signer{key}, Peers: []Peer{peer("https://b.example")}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	before := p.now.Load()
	if err := p.Update([]Peer{peer("https://b.example"), peer("https://c.example", "https://d.example")}); err != nil {
		t.Fatal(err)
	}
	after := p.now.Load()
	if after.routes["https://b.example"] != before.routes["https://b.example"] || after.verifiers["https://b.example"].Verifier != before.verifiers["https://b.example"].Verifier {
		t.Error("the peer that stays has other connections, or has forgotten proofs")
	}
	if place, _ := p.Place("https://d.example"); place != Elsewhere {
		t.Error("a service that is reached by a new peer is not known")
	}

	err = p.Update([]Peer{peer("https://c.example"), peer("https://c.example")})
	if err == nil || !strings.Contains(err.Error(), "https://c.example, which is this service or was found before") || p.now.Load() != after {
		t.Errorf("found %v, and whether the peers are those before is %t", err, p.now.Load() == after)
	}

	changed := peer("https://b.example", "https://e.example")
	if err := p.Update([]Peer{changed}); err != nil {
		t.Fatal(err)
	}
	now := p.now.Load()
	if now.verifiers["https://b.example"].Verifier != before.verifiers["https://b.example"].Verifier {
		t.Error("a peer with another route has forgotten proofs")
	}
	if place, _ := p.Place("https://c.example"); place != Unknown {
		t.Error("a peer that is gone is asked")
	}
	changed.Issuers = []caller.Issuer{{URL: "https://idp.example", Audiences: []string{"y"}}}
	if err := p.Update([]Peer{changed}); err != nil {
		t.Fatal(err)
	}
	if p.now.Load().verifiers["https://b.example"].Verifier == before.verifiers["https://b.example"].Verifier {
		t.Error("the tokens of a peer are checked for the audience that it had before")
	}
	if err := p.Update(nil); err != nil || len(p.Usable()) > 0 {
		t.Errorf("found %v and %v, expected no peers", err, p.Usable())
	}
}

func TestTheProofsThatWereUsedWithAPeerAreKnownUntilNoneCanBeUsedAnyMore(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	peer := func(audience string) []Peer {
		return []Peer{{Peer: caller.Peer{URL: "https://b.example"}, Issuers: []caller.Issuer{{URL: "https://idp.example", Audiences: []string{audience}}}}}
	}
	p, err := New(Config{URL: "https://a.example", Keys: []crypto.Signer{key}, Peers: peer("x"), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	first := p.now.Load().verifiers["https://b.example"].UsedProofs()
	for _, step := range []struct {
		change string
		peers  [][]Peer
		after  time.Duration
		known  bool
	}{
		{"a peer with other issuers", [][]Peer{peer("y")}, 0, true},
		{"a peer that is gone for a moment", [][]Peer{nil, peer("y")}, time.Second, true},
		{"a peer that is gone and comes back with other issuers", [][]Peer{nil, nil, peer("x")}, proofLife / 4, true},
		{"a peer that was gone for long", [][]Peer{nil, nil, peer("x")}, proofLife + time.Second, false},
	} {
		for _, peers := range step.peers {
			if err := p.Update(peers); err != nil {
				t.Fatal(err)
			}
			now = now.Add(step.after)
		}
		if known := p.now.Load().verifiers["https://b.example"].UsedProofs() == first; known != step.known {
			t.Errorf("%s: whether the proofs are known is %t, want %t", step.change, known, step.known)
		}
	}
}
