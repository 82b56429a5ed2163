// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"encoding/json"
	"fmt"
	"net/http"

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

// maxProofs is how many proofs of the callers of one peer are remembered.
const maxProofs = 1 << 18

// Peers are the peers of a service. It is safe for concurrent use.
type Peers struct {
	config     Config
	statements *caller.Statements
	requests   *signer
	replies    *signer
	metadata   []byte
	keys       []byte
	// routes has the peer that is asked for the data keys of a service.
	routes map[string]*peer
	// verifiers check the callers whose requests began at a peer.
	verifiers map[string]*caller.Verifier
}

// New returns the peers of a service. It makes no connection. [Peers.Close] ends what it does in the background.
func New(config Config) (*Peers, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	p := &Peers{config: config, routes: map[string]*peer{}, verifiers: map[string]*caller.Verifier{}}
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
	var signers []caller.Peer
	for i, settings := range config.Peers {
		signers = append(signers, settings.Peer)
		verifier, err := newVerifier(settings, config)
		if err != nil {
			return nil, fmt.Errorf("peers[%d]: %w", i, err)
		}
		p.verifiers[settings.URL] = verifier
		made, err := newPeer(settings, config)
		if err != nil {
			return nil, fmt.Errorf("peers[%d]: %w", i, err)
		}
		p.routes[settings.URL] = made
		for _, route := range settings.Routes {
			p.routes[route] = made
		}
	}
	if p.statements, err = caller.NewStatements(signers, config.Now, config.Log); err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	return p, nil
}

// newVerifier returns what checks the callers of a peer as the peer does: their proofs are for its URL.
func newVerifier(settings Peer, config Config) (*caller.Verifier, error) {
	issuers := make([]caller.Issuer, 0, len(settings.Issuers))
	for _, issuer := range settings.Issuers {
		issuer.PlainBearer = false // the service that forwards could use the token for anything
		issuers = append(issuers, issuer)
	}
	return caller.New(caller.Config{URLs: []string{settings.URL}, Issuers: issuers, Replays: maxProofs, Now: config.Now, Log: config.Log})
}

// Close ends requests that are under way in the background. No other method may be called afterwards.
func (p *Peers) Close() {
	p.statements.Close()
	for _, verifier := range p.verifiers {
		verifier.Close()
	}
	for _, asked := range p.routes {
		asked.client.CloseIdleConnections()
	}
}

// Handle adds what peers read without credentials: where the keys of the service are, and the keys.
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
	usable := make(map[string]bool, len(p.config.Peers))
	for _, settings := range p.config.Peers {
		usable[settings.URL] = p.routes[settings.URL].breaker.State() == gobreaker.StateClosed
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
	case p.routes[service] != nil:
		return Elsewhere, service
	}
	return Unknown, service
}
