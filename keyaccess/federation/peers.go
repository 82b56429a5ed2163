// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/sony/gobreaker/v2"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
)

// Paths that peers ask.
const (
	// PathRewrap takes the signed request of a client, with a statement in [HeaderStatement], and answers with a statement.
	PathRewrap = "/federation/v1/rewrap"
	pathKeys   = "/federation/v1/keys"
)

// HeaderStatement is the header with the statement of the service that forwards. It is no part of the body, so that nothing is
// read of a request whose sender is not known.
const HeaderStatement = "Key-Access-Statement"

// maxStatement is the size of the largest statement in a header in bytes. A server has 64 KiB for all headers.
const maxStatement = 56 << 10

// contentType is the type of signed requests and statements (RFC 7515, section 9.2.1).
const contentType = "application/jose"

// maxProofs is the maximum number of proofs of the callers of one peer that are remembered.
const maxProofs = 1 << 18

// Peers are the peers of a service. It is safe for concurrent use.
type Peers struct {
	config     Config
	statements *caller.Statements
	requests   jose.Signer
	replies    jose.Signer
	metadata   []byte
	keys       []byte

	changing sync.Mutex
	// used has the proofs of the callers of each peer that were accepted.
	used map[string]usedProofs
	now  atomic.Pointer[table]
}

// usedProofs are the accepted proofs of the callers of a peer. gone is the time at which the peer was removed, and zero before.
type usedProofs struct {
	caller.UsedProofs
	gone time.Time
}

// table says who the peers are at one time.
type table struct {
	settings []Peer
	// routes has the peer that is asked for the data keys of a service.
	routes map[string]*peer
	// verifiers check the callers whose requests began at a peer.
	verifiers map[string]verifier
}

// verifier checks the callers of one peer.
type verifier struct {
	issuers []caller.Issuer
	*caller.Verifier
}

// proofLife is longer than a proof can be used.
const proofLife = 2*caller.DefaultProofAge + 2*caller.DefaultSkew

// drainTime is how long a peer that is gone serves requests that have begun. It is longer than a service works on one.
const drainTime = time.Minute

// New returns the peers of a service. It makes no connection. [Peers.Close] ends what it does in the background.
func New(config Config) (*Peers, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	p := &Peers{config: config, used: map[string]usedProofs{}}
	p.now.Store(&table{})
	var err error
	if p.requests, err = newSigner(config.Keys[0], typeForward); err != nil {
		return nil, err
	}
	if p.replies, err = newSigner(config.Keys[0], typeResult); err != nil {
		return nil, err
	}
	if p.keys, err = keySet(config.Keys); err != nil {
		return nil, err
	}
	if p.metadata, err = json.Marshal(map[string]string{"issuer": config.URL, "jwks_uri": config.URL + pathKeys}); err != nil {
		return nil, err
	}
	if p.statements, err = caller.NewStatements(nil, config.Now, config.Log); err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	return p, p.Update(config.Peers)
}

// Update replaces the peers. Unchanged peers keep their connections, their keys and their state, and requests that have begun go
// on. After an error, nothing has changed.
func (p *Peers) Update(peers []Peer) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	config := p.config
	config.Peers = peers
	if err := config.complete(); err != nil {
		return err
	}
	before, after := p.now.Load(), &table{settings: config.Peers, routes: map[string]*peer{}, verifiers: map[string]verifier{}}
	var signers []caller.Peer
	for i, settings := range config.Peers {
		signers = append(signers, settings.Peer)
		checks, known := before.verifiers[settings.URL]
		if !known || !reflect.DeepEqual(checks.issuers, settings.Issuers) {
			made, err := newVerifier(settings, config, p.used[settings.URL].UsedProofs)
			if err != nil {
				return fmt.Errorf("peers[%d]: %w", i, err)
			}
			checks = verifier{settings.Issuers, made}
		}
		after.verifiers[settings.URL] = checks
		asked := before.routes[settings.URL]
		if asked == nil || !reflect.DeepEqual(asked.Peer, settings) {
			var err error
			if asked, err = newPeer(settings, config); err != nil {
				return fmt.Errorf("peers[%d]: %w", i, err)
			}
		}
		for _, service := range append([]string{settings.URL}, settings.Routes...) {
			after.routes[service] = asked
		}
	}
	end, err := p.statements.Update(signers)
	if err != nil {
		return fmt.Errorf("peers: %w", err)
	}
	p.now.Store(after)
	p.keepProofs(after)
	time.AfterFunc(drainTime, func() {
		end()
		before.closeWithout(after)
	})
	return nil
}

// keepProofs keeps the proofs that were used with the peers of a table and with removed peers until they have expired. So a proof
// is accepted only once, even if a peer is changed or removed and added again.
func (p *Peers) keepProofs(peers *table) {
	now := p.config.Now()
	for url, used := range p.used {
		if used.gone.IsZero() {
			p.used[url] = usedProofs{used.UsedProofs, now}
		} else if now.Sub(used.gone) > proofLife {
			delete(p.used, url)
		}
	}
	for url, checks := range peers.verifiers {
		p.used[url] = usedProofs{UsedProofs: checks.UsedProofs()}
	}
}

// closeWithout closes the verifiers and connections that the table uses and the other table does not.
func (t *table) closeWithout(other *table) {
	for url, checks := range t.verifiers {
		if other.verifiers[url].Verifier != checks.Verifier {
			checks.Close()
		}
	}
	for service, asked := range t.routes {
		if other.routes[service] != asked {
			asked.client.CloseIdleConnections()
		}
	}
}

// newVerifier returns a verifier that checks the callers of a peer as the peer does: their proofs are for the URL of the peer. It
// accepts none of the used proofs.
func newVerifier(settings Peer, config Config, used caller.UsedProofs) (*caller.Verifier, error) {
	issuers := make([]caller.Issuer, 0, len(settings.Issuers))
	for _, issuer := range settings.Issuers {
		issuer.PlainBearer = false // the service that forwards could use the token for anything
		issuers = append(issuers, issuer)
	}
	return caller.New(caller.Config{URLs: []string{settings.URL}, Issuers: issuers, Replays: maxProofs, Used: used, Now: config.Now, Log: config.Log})
}

// Close ends requests that are under way in the background. No other method may be called afterwards.
func (p *Peers) Close() {
	p.statements.Close()
	p.now.Load().closeWithout(&table{})
}

// Handle adds the two documents that peers read without credentials: the discovery document and the keys of the service.
func (p *Peers) Handle(mux *http.ServeMux) {
	for path, document := range map[string][]byte{caller.PeerDiscoveryPath: p.metadata, pathKeys: p.keys} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(document) // the peer has gone if this fails
		})
	}
}

// Usable returns whether each peer gets requests, by its URL. One that has failed lately does not.
func (p *Peers) Usable() map[string]bool {
	now := p.now.Load()
	usable := make(map[string]bool, len(now.settings))
	for _, settings := range now.settings {
		usable[settings.URL] = now.routes[settings.URL].breaker.State() == gobreaker.StateClosed
	}
	return usable
}

// Place says which service a data key belongs to.
type Place int

// The places.
const (
	// Unknown is a service that is neither this one nor reached by a peer.
	Unknown Place = iota
	// Here is this service.
	Here
	// Elsewhere is a service that is asked by way of a peer.
	Elsewhere
)

// Place returns where the data key of an object is, by the URL in the object, and the URL in normal form.
func (p *Peers) Place(text string) (Place, string) {
	service, ok := origin(text)
	switch {
	case !ok:
		return Unknown, ""
	case service == p.config.URL:
		return Here, service
	case p.now.Load().routes[service] != nil:
		return Elsewhere, service
	}
	return Unknown, service
}
