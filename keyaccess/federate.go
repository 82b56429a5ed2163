// SPDX-License-Identifier: Apache-2.0

package keyaccess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
)

// maxPeerText is the size in bytes of the longest failure that a peer may report of a data key.
const maxPeerText = 300

// location is where a data key is.
type location struct {
	// place is its place among all data keys of the request, from 0.
	place int
	// here says that this service unwraps the data key.
	here bool
	// wanted says that the request asks for the data key. A peer does not ask for all data keys of the client's request.
	wanted bool
	// service is the URL of the service that has the data key.
	service string
	// share names the share of the file's key, or is empty.
	share string
	// problem is why nobody is asked for the data key, or empty.
	problem string
}

// locate finds out where the data keys of a request are. only are the places that a peer asks for, or nil for a client.
func (r *release) locate(only []int) {
	next := 0
	for i, policy := range r.body.Policies {
		var located []location
		for _, object := range policy.GetKeyAccessObjects() {
			at := location{place: next, wanted: only == nil || slices.Contains(only, next), here: r.Peers == nil}
			if sid := object.GetKeyAccessObject().GetSplitId(); sid != "" {
				at.share = fmt.Sprintf("%d %s", i, sid)
			}
			if r.Peers != nil {
				r.place(&at, object.GetKeyAccessObject().GetKasUrl(), only == nil)
			}
			at.here = at.here && at.wanted
			located = append(located, at)
			next++
		}
		r.located = append(r.located, located)
	}
	if r.recipient.SessionKey() != "" && r.services() > 1 {
		r.each(func(at *location) {
			if !at.here {
				at.problem = "the client has an EC key, to which only one service can wrap in one request: ask each service on its own, or with an RSA or ML-KEM key"
			}
		})
	}
}

// place finds out where one data key is. Files that were written for a service without peers may have any URL. So this service tries
// data keys with an unknown URL itself, except if a peer asks for them.
func (r *release) place(at *location, url string, client bool) {
	place, service := r.Peers.Place(url)
	at.service = service
	switch {
	case place == federation.Here, place == federation.Unknown && client:
		at.here, at.service = true, r.URL
	case place == federation.Unknown:
		at.problem = "no peer is known for this service"
	case r.who.ProofKey == nil:
		at.problem = "the token of the caller is bound to no key, so it is not forwarded to another service"
	}
}

// each calls a function for each data key that is asked for.
func (r *release) each(visit func(*location)) {
	for i := range r.located {
		for j := range r.located[i] {
			if r.located[i][j].wanted {
				visit(&r.located[i][j])
			}
		}
	}
}

// services returns how many services have the data keys.
func (r *release) services() int {
	found := map[string]bool{}
	r.each(func(at *location) { found[at.service] = true })
	return len(found)
}

// askPeers begins to ask peers for the data keys that are not here. The function that it returns waits for the answers, and adds them to the response.
func (r *release) askPeers(ctx context.Context, asked federation.Request) (gather func(*kas.RewrapResponse)) {
	var objects []federation.Object
	r.each(func(at *location) {
		if !at.here && at.problem == "" {
			objects = append(objects, federation.Object{Object: at.place, Service: at.service, Share: at.share})
		}
	})
	if len(objects) > 0 {
		r.asking = r.Peers.Ask(ctx, asked, objects)
	}
	return r.gather
}

// released records that this service has released a data key.
func (r *release) released(at location) {
	if r.asking != nil {
		r.asking.Released(at.share)
	}
}

// gather adds the answers of peers to the results.
func (r *release) gather(response *kas.RewrapResponse) {
	var answers map[int]federation.Answer
	if r.asking != nil {
		answers = r.asking.Answers()
	}
	for i, located := range r.located {
		for j, at := range located {
			if at.here || !at.wanted {
				continue
			}
			result, answer := response.GetResponses()[i].GetResults()[j], answers[at.place]
			if at.problem == "" && len(answer.Wrapped) > 0 {
				result.Status = permit
				result.Result = &kas.KeyAccessRewrapResult_KasWrappedKey{KasWrappedKey: answer.Wrapped}
				if r.recipient.SessionKey() != "" {
					response.SessionPublicKey = answer.SessionKey
				}
				continue
			}
			result.Result = &kas.KeyAccessRewrapResult_Error{Error: peerText(at, answer)}
		}
	}
}

// peerText returns the text for a data key that another service has not released.
func peerText(at location, answer federation.Answer) string {
	if at.problem != "" {
		return textUnavailable + at.service + ": " + at.problem
	}
	text := strings.ToValidUTF8(answer.Error[:min(len(answer.Error), maxPeerText)], "") // the cut may split a character
	if answer.Unreachable || !strings.HasPrefix(text, "rpc error: code = ") {
		return textUnavailable + at.service + ": " + text
	}
	return text
}

// fromPeers serves requests that peers forward.
func (s *Service) fromPeers() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		observed := s.observe(FromPeer)
		defer observed.end()
		if s.PeerShedder != nil {
			leave, err := s.PeerShedder.Enter(r.Context())
			if err != nil {
				observed.shed(err)
				s.refuse(jsonErrors{}, w, r, err)
				return
			}
			defer leave()
		}
		statement, err := s.servePeer(r)
		observed.note(err)
		if known := (*connect.Error)(nil); errors.As(err, &known) {
			_ = jsonErrors{}.Write(w, r, err) // the peer has gone if this fails
			return
		}
		if err != nil {
			s.refuse(jsonErrors{}, w, r, err)
			return
		}
		federation.WriteReply(w, statement)
	})
}

// servePeer returns the statement for the request of a peer.
func (s *Service) servePeer(r *http.Request) (string, error) {
	asked, err := s.Peers.Open(r.Context(), r.Header, procedureRewrap, pathRewrap)
	if err == nil && s.Rates != nil {
		err = s.Rates.Admit(asked.Caller)
	}
	if err == nil {
		err = asked.Read(r.Body, s.Limits.BodyBytes)
	}
	switch {
	case errors.Is(err, federation.ErrTooLarge):
		return "", connect.NewError(connect.CodeResourceExhausted, err)
	case errors.Is(err, federation.ErrStatement):
		return "", connect.NewError(connect.CodeInvalidArgument, err)
	case err != nil:
		return "", err
	}
	if asked.Caller.ProofKey == nil { // the verifier accepts no others
		return "", connect.NewError(connect.CodeInternal, errors.New("the caller has proven no key"))
	}
	release, err := s.read(asked.Signed, asked.Caller)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.Limits.Time)
	defer cancel()
	release.origin = tdfpolicy.Origin{Address: address(r), Peer: asked.By}
	release.locate(asked.Objects)
	response, err := release.respond(ctx, asked.Request)
	if err != nil {
		return "", err
	}
	found, err := release.results(response, len(asked.Objects))
	if err != nil {
		return "", err
	}
	return s.Peers.Reply(asked, response.GetSessionPublicKey(), found)
}

// results returns the results of a response for a peer, in the order of the request.
func (r *release) results(response *kas.RewrapResponse, expected int) ([]federation.Result, error) {
	var found []federation.Result
	for i, located := range r.located {
		for j, at := range located {
			if result := response.GetResponses()[i].GetResults()[j]; at.wanted {
				found = append(found, federation.Result{Object: at.place, Wrapped: result.GetKasWrappedKey(), Error: result.GetError()})
			}
		}
	}
	if len(found) != expected {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the peer asks for data keys that the request of the client does not have"))
	}
	return found, nil
}
