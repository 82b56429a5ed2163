// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4/json"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/jws"
)

// PeerDiscoveryPath is the path of the document in which a service says where its keys for statements are. It has the members
// issuer and jwks_uri, as the document of OpenID Connect has, but no client of an issuer looks for it.
const PeerDiscoveryPath = "/.well-known/key-access-peer"

// Peer is a service that signs statements.
type Peer struct {
	// URL is the service, with https. It names the service in its statements, and its keys are found below it.
	URL string
	// Authorities are the certificates that the server is checked with, as PEM. Without them, the authorities of the system are
	// trusted.
	Authorities []byte
	// LoopbackHTTP accepts a URL by http at a loopback IP address. It is for tests.
	LoopbackHTTP bool
}

// How old the keys of a peer may be.
const (
	// refreshPeer is the age at which document and keys of a peer are fetched again while they are in use.
	refreshPeer = 5 * time.Minute
	// keepPeer is how long the keys of a peer are used while the peer cannot be reached.
	keepPeer = time.Hour
)

// Statements checks the statements that other services sign. It is safe for concurrent use.
type Statements struct {
	now   func() time.Time
	log   *slog.Logger
	peers atomic.Pointer[map[string]peerKeys]
}

// peerKeys has the keys of a peer.
type peerKeys struct {
	settings Peer
	*keySource
}

// NewStatements returns a [Statements] for the statements of these peers. It makes no connection. now and log are as in [Config].
func NewStatements(peers []Peer, now func() time.Time, log *slog.Logger) (*Statements, error) {
	s := &Statements{now: now, log: log}
	s.peers.Store(&map[string]peerKeys{})
	_, err := s.Update(peers)
	return s, err
}

// Update replaces the peers. Unchanged peers keep their keys. After an error, nothing has changed. end ends requests to removed
// peers. The caller calls it after every call of Open for them has returned. Only one goroutine may call Update at a time.
func (s *Statements) Update(peers []Peer) (end func(), err error) {
	before, after := *s.peers.Load(), make(map[string]peerKeys, len(peers))
	for _, peer := range peers {
		if known, ok := before[peer.URL]; ok && reflect.DeepEqual(known.settings, peer) {
			after[peer.URL] = known
			continue
		}
		settings := Issuer{
			URL: peer.URL, Authorities: peer.Authorities, LoopbackHTTP: peer.LoopbackHTTP,
			Audiences: []string{"statements"}, RefreshKeys: refreshPeer, KeepKeys: keepPeer, // audiences are for tokens only
		}
		if err := settings.complete(); err != nil {
			return nil, err
		}
		source, err := newKeySource(settings, s.now, s.log)
		if err != nil {
			return nil, err
		}
		source.discovery = PeerDiscoveryPath
		after[peer.URL] = peerKeys{peer, source}
	}
	s.peers.Store(&after)
	return func() {
		for url, peer := range before {
			if after[url].keySource != peer.keySource {
				peer.close()
			}
		}
	}, nil
}

// Close ends requests to peers and waits for their end. Open must not be called afterwards.
func (s *Statements) Close() {
	for _, peer := range *s.peers.Load() {
		peer.close()
	}
}

// Open returns the payload of a statement (a JWS in the compact form) and who has signed it. The type of its header has to be
// kind, so that a statement of one kind is not accepted for another, and its claim iss has to be a peer. Nothing else of the
// payload is checked. The error is an [*Error]. asked says that the statement is the answer to a request of this service. Then it waits
// for the keys of the peer, however many others wait.
func (s *Statements) Open(ctx context.Context, text, kind string, asked bool) (by string, payload []byte, err error) {
	signed, err := jws.Open(text)
	if err != nil {
		return "", nil, invalidStatement(err.Error())
	}
	if signed.Header.Type != kind {
		return "", nil, invalidStatement(fmt.Sprintf("has another type, expected %s", kind))
	}
	if signed.Header.KeyID == "" || signed.Header.Key != nil {
		return "", nil, invalidStatement("has no kid or brings a key of its own")
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(signed.Payload, &claims) != nil {
		return "", nil, invalidStatement("has claims that cannot be read")
	}
	from, known := (*s.peers.Load())[claims.Issuer]
	if !known {
		return "", nil, invalidStatement("is of a service that is not a peer of this one")
	}
	key, refused := from.key(ctx, signed.Header.KeyID, signed.Header.Algorithm, asked)
	switch {
	case refused != nil && refused.Reason == Unavailable:
		return "", nil, unavailable("the keys of the peer are not available at this time")
	case refused != nil:
		return "", nil, invalidStatement("is signed with a key that the peer does not publish")
	}
	if err := key.verify(signed); err != nil {
		return "", nil, invalidStatement(err.Error())
	}
	return claims.Issuer, signed.Payload, nil
}

// invalidStatement returns an error whose text continues a sentence.
func invalidStatement(text string) *Error {
	return &Error{Reason: InvalidToken, text: "the statement of the peer " + text}
}
