// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/defect"
)

// Request is a request of a client, as this service has got it.
type Request struct {
	// Via are the services that have forwarded the request, without this one. It is empty for a request of a client.
	Via []string
	// Authorization and Proof are the headers of the client's request, and Path is its path.
	Authorization, Proof, Path string
	// Signed is the signed request of the client.
	Signed string
}

// Object is a data key that another service has.
type Object struct {
	// Object is its place among all data keys of the request, from 0.
	Object int
	// Service is the URL from [Peers.Place].
	Service string
	// Share names the share of the key of a file. One of the data keys with the same share is enough. Without a name, each data
	// key is wanted.
	Share string
}

// Answer has the results of peers for one data key.
type Answer struct {
	Result
	// Unreachable says that the data key could not be asked for. Then Error says why, without the form of the client's protocol.
	Unreachable bool
	// SessionKey is the ephemeral public key in PEM that an EC client needs for this data key.
	SessionKey string
}

// textShare is the text for a data key that is not needed any more.
const textShare = "another service has released this share, so the request to this one was ended"

// Asking is a request to peers that is under way. Its methods are for one goroutine.
type Asking struct {
	peers   *Peers
	request Request
	by      map[*peer][]Object
	done    sync.WaitGroup

	mu      sync.Mutex
	answers map[int]Answer
	// released are the shares that a client has got.
	released map[string]bool
	// cancels end the requests that are under way.
	cancels map[*peer]context.CancelCauseFunc
}

// Ask asks for data keys, all peers at the same time. The requests end with ctx.
func (p *Peers) Ask(ctx context.Context, request Request, objects []Object) *Asking {
	a := &Asking{
		peers: p, request: request, by: map[*peer][]Object{}, answers: make(map[int]Answer, len(objects)), released: map[string]bool{}, cancels: map[*peer]context.CancelCauseFunc{},
	}
	routes := p.now.Load().routes
	for _, object := range objects {
		asked := routes[object.Service]
		if problem := p.mayAsk(asked, request.Via); problem != "" {
			a.answers[object.Object] = unreachable(object, problem)
			continue
		}
		a.by[asked] = append(a.by[asked], object)
	}
	contexts := make(map[*peer]context.Context, len(a.by))
	for asked := range a.by { // before the first request can end
		contexts[asked], a.cancels[asked] = context.WithCancelCause(ctx)
	}
	for asked, wanted := range a.by {
		a.done.Go(func() { a.ask(contexts[asked], asked, wanted) })
	}
	return a
}

// Released notes that this service has released a share. Answers does not wait for a peer if all its data keys belong to released
// shares.
func (a *Asking) Released(share string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if share != "" {
		a.released[share] = true
		a.spare()
	}
}

// Answers waits for the peers, and returns an answer for each data key by its place.
func (a *Asking) Answers() map[int]Answer {
	a.done.Wait()
	return a.answers
}

// mayAsk returns why a peer is not asked, or the empty string.
func (p *Peers) mayAsk(asked *peer, via []string) string {
	switch {
	case asked == nil:
		return "no peer is known for this service"
	case slices.Contains(via, asked.URL):
		return fmt.Sprintf("the request came by way of %s, and would go there again", asked.URL)
	case len(via) >= p.config.Depth:
		return fmt.Sprintf("the request came by way of %d services, expected at most %d", len(via), p.config.Depth-1)
	}
	return ""
}

func unreachable(object Object, text string) Answer {
	return Answer{Result: Result{Object: object.Object, Error: text}, Unreachable: true}
}

// ask asks one peer.
func (a *Asking) ask(ctx context.Context, asked *peer, wanted []Object) {
	var reply *results
	err, began := errFailed, time.Now()
	defer func() {
		if recovered := recover(); recovered != nil {
			cause, stack := defect.Describe(recovered)
			a.peers.config.Log.Error("a request to a peer failed because of a defect; other requests are not affected", "peer", asked.URL, "cause", cause, "stack", stack)
		}
		if a.peers.config.Observe != nil {
			a.peers.config.Observe(asked.URL, endingOf(err), time.Since(began))
		}
		a.note(asked, wanted, reply, err)
	}()
	err = asked.within(ctx, len(wanted), func(ctx context.Context) (err error) {
		reply, err = a.exchange(ctx, asked, wanted)
		return err
	})
}

// exchange makes a request and checks the reply.
func (a *Asking) exchange(ctx context.Context, asked *peer, wanted []Object) (*results, error) {
	places := make([]int, len(wanted))
	for i, object := range wanted {
		places[i] = object.Object
	}
	sent := header{Issuer: a.peers.config.URL, Audience: asked.URL, ID: rand.Text(), IssuedAt: a.peers.config.Now().Unix()}
	digest := sha256.Sum256([]byte(a.request.Signed))
	statement, err := sign(a.peers.requests, forward{
		header: sent, Via: append(slices.Clone(a.request.Via), a.peers.config.URL),
		Authorization: a.request.Authorization, Proof: a.request.Proof, Path: a.request.Path, Digest: digest[:], Objects: places,
	})
	if err != nil {
		return nil, err
	}
	if len(statement) > maxStatement {
		return nil, fmt.Errorf("%w: the statement would have %d bytes, expected at most %d", errRefused, len(statement), maxStatement)
	}
	text, err := asked.send(ctx, statement, a.request.Signed, len(wanted))
	if err != nil {
		return nil, err
	}
	by, payload, err := a.peers.statements.Open(ctx, text, typeResult, true)
	reply := &results{}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errFailed, err)
	case json.Unmarshal(payload, reply) != nil:
		return nil, fmt.Errorf("%w: found results that cannot be read", errFailed)
	case by != asked.URL || reply.ID != sent.ID || !reply.fits(a.peers.config.URL, a.peers.config.Now()):
		return nil, fmt.Errorf("%w: found results of another service or for another request", errFailed)
	case !slices.EqualFunc(reply.Results, places, func(found Result, place int) bool { return found.Object == place }):
		return nil, fmt.Errorf("%w: found results for other data keys", errFailed)
	}
	return reply, nil
}

// note keeps the answers of a peer.
func (a *Asking) note(asked *peer, wanted []Object, reply *results, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancels[asked](nil)
	delete(a.cancels, asked)
	if err != nil {
		a.failed(asked, wanted, err)
		return
	}
	for i, object := range wanted {
		a.answers[object.Object] = Answer{Result: reply.Results[i], SessionKey: reply.SessionKey}
		if object.Share != "" && len(reply.Results[i].Wrapped) > 0 {
			a.released[object.Share] = true
		}
	}
	a.spare()
}

// spare ends requests to peers that are not needed any more.
func (a *Asking) spare() {
	for asked, cancel := range a.cancels {
		if a.spared(a.by[asked]) {
			cancel(errSpared)
		}
	}
}

// failed keeps why a peer has no answers.
func (a *Asking) failed(asked *peer, wanted []Object, err error) {
	text := textOf(err)
	switch {
	case errors.Is(err, context.Canceled) && a.spared(wanted):
		text = textShare
	case errors.Is(err, context.Canceled), errors.Is(err, errNotNow): // the log already has the earlier failures
	default:
		a.peers.config.Log.Warn("a peer has not answered a request for data keys", "peer", asked.URL, "error", err, "objects", len(wanted))
	}
	for _, object := range wanted {
		a.answers[object.Object] = unreachable(object, text)
	}
}

// spared reports whether all data keys belong to shares that another service has released.
func (a *Asking) spared(wanted []Object) bool {
	return !slices.ContainsFunc(wanted, func(object Object) bool { return !a.released[object.Share] })
}

// textOf returns the text of an error for clients, without what the peer or the network said.
func textOf(err error) string {
	for _, known := range []error{errNotNow, errLate, errRefused, errBusy} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if errors.Is(err, context.Canceled) {
		return errLate.Error()
	}
	return errFailed.Error()
}
