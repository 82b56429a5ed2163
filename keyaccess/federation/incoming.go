// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
)

// Forwarded is a request that a peer has forwarded, of a caller who is known.
type Forwarded struct {
	Request
	// By is the peer, and Caller who has made the request.
	By     string
	Caller caller.Caller
	// Objects are the places of the data keys that the peer asks for, in ascending order.
	Objects []int

	id     string
	digest []byte
}

// The errors of requests of peers, apart from a [*caller.Error]. Their texts are for the peer.
var (
	// ErrTooLarge says that the request is too large.
	ErrTooLarge = errors.New("the request of the peer is too large")
	// ErrStatement says that the statement cannot be served.
	ErrStatement = errors.New("the statement of the peer")
)

// Open returns the request of a peer from the header of its request, without what the client has signed: see [Forwarded.Read]. paths
// are the paths at which clients ask for data keys. The error is a [*caller.Error] if the peer or the caller is not known, or else
// [ErrStatement].
func (p *Peers) Open(ctx context.Context, in http.Header, paths ...string) (*Forwarded, error) {
	text := in.Values(HeaderStatement)
	if len(text) != 1 || len(text[0]) > maxStatement {
		return nil, fmt.Errorf("%w is not in the header %s, expected it once with at most %d bytes", ErrStatement, HeaderStatement, maxStatement)
	}
	by, payload, err := p.statements.Open(ctx, text[0], typeForward, false)
	if err != nil {
		return nil, err
	}
	var found forward
	if json.Unmarshal(payload, &found) != nil {
		return nil, fmt.Errorf("%w has claims that cannot be read", ErrStatement)
	}
	verifiers := p.now.Load().verifiers
	if err := p.check(&found, paths, verifiers); err != nil {
		return nil, err
	}
	// The proof of the caller is accepted once, and so is the statement with it.
	who, err := verifiers[found.Via[0]].Verify(ctx, caller.Request{
		Authorization: found.Authorization, Proofs: []string{found.Proof}, Method: http.MethodPost, URL: found.Path,
	})
	if err != nil {
		return nil, err
	}
	return &Forwarded{
		Request: Request{Via: found.Via, Authorization: found.Authorization, Proof: found.Proof, Path: found.Path},
		By:      by, Caller: who, Objects: found.Objects, id: found.ID, digest: found.Digest,
	}, nil
}

// Read reads what the client has signed. limit is the size of the largest request in bytes. The error is [ErrTooLarge] or
// [ErrStatement].
func (f *Forwarded) Read(body io.Reader, limit int) error {
	text, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w has a body that ends too early", ErrStatement)
	case len(text) > limit:
		return fmt.Errorf("%w: expected at most %d bytes", ErrTooLarge, limit)
	}
	if digest := sha256.Sum256(text); !bytes.Equal(digest[:], f.digest) {
		return fmt.Errorf("%w is for a request with another body", ErrStatement)
	}
	f.Signed = string(text)
	return nil
}

// check checks everything of a statement but the caller.
func (p *Peers) check(found *forward, paths []string, verifiers map[string]verifier) error {
	switch {
	case !found.fits(p.config.URL, p.config.Now()):
		return fmt.Errorf("%w is for another service or of another time", ErrStatement)
	case len(found.Via) == 0 || found.Via[len(found.Via)-1] != found.Issuer:
		return fmt.Errorf("%w does not end its way with the peer", ErrStatement)
	case slices.Contains(found.Via, p.config.URL):
		return fmt.Errorf("%w came by way of this service before: the routes of the services are a loop", ErrStatement)
	case len(found.Via) > p.config.Depth:
		return fmt.Errorf("%w came by way of %d services, expected at most %d", ErrStatement, len(found.Via), p.config.Depth)
	case verifiers[found.Via[0]].Verifier == nil:
		return fmt.Errorf("%w began at a service that is not a peer of this one", ErrStatement)
	case !slices.Contains(paths, found.Path):
		return fmt.Errorf("%w has a proof for another path", ErrStatement)
	case len(found.Objects) == 0 || found.Objects[0] < 0:
		return fmt.Errorf("%w asks for nothing", ErrStatement)
	}
	for i, object := range found.Objects[1:] {
		if object <= found.Objects[i] {
			return fmt.Errorf("%w asks for data keys in another order", ErrStatement)
		}
	}
	return nil
}

// Reply returns the statement with the results for a request, in the order of its objects. sessionKey is the ephemeral public key
// in PEM that an EC client needs, or empty.
func (p *Peers) Reply(to *Forwarded, sessionKey string, found []Result) (string, error) {
	return sign(p.replies, results{
		header:     header{Issuer: p.config.URL, Audience: to.By, ID: to.id, IssuedAt: p.config.Now().Unix()},
		SessionKey: sessionKey, Results: found,
	})
}

// WriteReply writes a statement as the reply of [PathRewrap].
func WriteReply(w http.ResponseWriter, statement string) {
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, statement) // the peer has gone if this fails
}
