// SPDX-License-Identifier: Apache-2.0

package keyaccess

import (
	"context"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/limit"
)

// Observer receives the outcomes of requests for data keys. Its methods are called by many
// goroutines, and must be quick. No argument has anything that a caller has chosen.
type Observer interface {
	// Began is called when a request arrives.
	Began(from Source)
	// Ended is called when a request has its reply, once for each call of Began. took includes the time in the queue.
	Ended(from Source, outcome Outcome, took time.Duration)
	// DataKey is called for each data key that this service has decided about itself.
	DataKey(result Result)
}

// Source is who sends a request for data keys.
type Source string

// The sources.
const (
	FromClient Source = "client"
	FromPeer   Source = "peer"
)

// Sources are all sources.
var Sources = []Source{FromClient, FromPeer}

// Outcome is how a request for data keys ended.
type Outcome string

// The outcomes.
const (
	// Answered says that each data key has a result, which may be a refusal.
	Answered Outcome = "answered"
	// NoCredentials says that the request has no token.
	NoCredentials Outcome = "no_credentials"
	// InvalidToken says that the token is not accepted.
	InvalidToken Outcome = "invalid_token"
	// InvalidProof says that the DPoP proof is missing or not accepted.
	InvalidProof Outcome = "invalid_proof"
	// InvalidSignature says that the request is not signed with the key of the caller.
	InvalidSignature Outcome = "invalid_signature"
	// InvalidRequest says that the request contradicts the protocol, or exceeds a limit.
	InvalidRequest Outcome = "invalid_request"
	// Unreadable says that the body is no message of the protocol, is too large, or ends too early.
	Unreadable Outcome = "unreadable"
	// RateLimited says that the caller or its tenant makes too many requests.
	RateLimited Outcome = "rate_limited"
	// Shed says that the service has too many requests.
	Shed Outcome = "shed"
	// Unavailable says that the credentials cannot be checked at this time.
	Unavailable Outcome = "unavailable"
	// DeadlineExceeded says that the time for the work on the request was over.
	DeadlineExceeded Outcome = "deadline_exceeded"
	// Canceled says that the client did not wait.
	Canceled Outcome = "canceled"
	// Internal says that the service has a defect.
	Internal Outcome = "internal"
)

// Outcomes are all outcomes.
var Outcomes = []Outcome{
	Answered, NoCredentials, InvalidToken, InvalidProof, InvalidSignature, InvalidRequest, Unreadable,
	RateLimited, Shed, Unavailable, DeadlineExceeded, Canceled, Internal,
}

// Result is the result for one data key.
type Result string

// The results.
const (
	// Released says that the caller got the data key.
	Released Result = "released"
	// Denied says that the rules do not permit it.
	Denied Result = "denied"
	// Invalid says that the policy, its binding, the wrapped key or the id of the key is wrong.
	Invalid Result = "invalid"
	// Unsupported says that the type of the key is not supported or off.
	Unsupported Result = "unsupported"
	// KeyManagerAway says that a key manager was needed and has not answered.
	KeyManagerAway Result = "unavailable"
)

// Results are all results.
var Results = []Result{Released, Denied, Invalid, Unsupported, KeyManagerAway}

// resultOf returns the result of a data key with the text of its failure, or none.
func resultOf(text string) Result {
	switch text {
	case "":
		return Released
	case textForbidden:
		return Denied
	case textBadRequest:
		return Invalid
	}
	if strings.HasPrefix(text, textUnavailable) {
		return KeyManagerAway
	}
	return Unsupported
}

// unobserved is the Observer of a service that has none.
type unobserved struct{}

func (unobserved) Began(Source)                         {}
func (unobserved) Ended(Source, Outcome, time.Duration) {}
func (unobserved) DataKey(Result)                       {}

// observation is one request that is observed.
type observation struct {
	observer Observer
	from     Source
	began    time.Time
	outcome  Outcome // empty as long as it is not known
}

// observe begins to observe a request. Its caller has to call end.
func (s *Service) observe(from Source) *observation {
	s.Observer.Began(from)
	return &observation{observer: s.Observer, from: from, began: time.Now()}
}

// end reports the outcome. There is none only if the service has a defect.
func (o *observation) end() {
	if o.outcome == "" {
		o.outcome = Internal
	}
	o.observer.Ended(o.from, o.outcome, time.Since(o.began))
}

// note records the outcome of a request by its error, or nil.
func (o *observation) note(err error) { o.outcome = outcomeOf(err) }

// shed records that a shedder has refused a request.
func (o *observation) shed(err error) {
	if o.note(err); o.outcome == RateLimited { // both limits use the same type of error
		o.outcome = Shed
	}
}

func outcomeOf(err error) Outcome {
	if err == nil {
		return Answered
	}
	if tooMany := (*limit.Refused)(nil); errors.As(err, &tooMany) {
		return RateLimited
	}
	if refused := (*caller.Error)(nil); errors.As(err, &refused) {
		switch refused.Reason {
		case caller.Missing:
			return NoCredentials
		case caller.InvalidRequest:
			return InvalidRequest
		case caller.InvalidToken:
			return InvalidToken
		case caller.InvalidProof:
			return InvalidProof
		case caller.Unavailable:
			return Unavailable
		}
		return Internal
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	}
	switch connect.CodeOf(err) {
	case connect.CodeUnauthenticated:
		return InvalidSignature
	case connect.CodeInvalidArgument, connect.CodeResourceExhausted:
		return InvalidRequest
	case connect.CodeDeadlineExceeded:
		return DeadlineExceeded
	case connect.CodeCanceled:
		return Canceled
	}
	return Internal
}
