// SPDX-License-Identifier: Apache-2.0

package keyaccess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/datakeycache"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/keyring"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/limit"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/request"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/tdfpolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

// Verifier says who calls. [caller.Verifier] implements it.
type Verifier interface {
	// Verify returns who calls. Its error is a [*caller.Error].
	Verify(ctx context.Context, request caller.Request) (caller.Caller, error)
	// Challenges returns the values of the header WWW-Authenticate for an error of Verify.
	Challenges(err error) []string
}

// Default limits of a request.
const (
	DefaultBodyBytes   = 4 << 20
	DefaultObjects     = 1000
	DefaultPolicyBytes = 256 << 10
)

// Limits are the limits of a request. All are above 0.
type Limits struct {
	// BodyBytes is the size of the largest request in bytes, after decompression.
	BodyBytes int
	// Time is how long data keys of one request are unwrapped. A data key without a key id may need all private keys.
	Time time.Duration
	request.Limits
}

// Options are the parts of a Service. All fields without a remark are required.
type Options struct {
	// URL is how clients reach the service, without a slash at the end.
	URL string
	// Issuer is the issuer of tokens that clients learn from the configuration of the service.
	Issuer     string
	Keys       func() *keyring.Ring
	Verifier   Verifier
	Authorizer tdfpolicy.Authorizer
	Limits     Limits
	// Rates limits callers and tenants. It is nil without a limit.
	Rates *limit.Rates
	// Shedder limits the requests for data keys that are worked on at one time. It is nil without a limit.
	Shedder *limit.Shedder
	// Peers are the services that have the data keys of objects with their URL. It is nil if there are none.
	Peers *federation.Peers
	// PeerShedder limits the requests of peers that are worked on at one time. It is nil without a limit. It is not Shedder:
	// requests of clients wait for peers, and two services could wait for each other's places.
	PeerShedder *limit.Shedder
	// DataKeys keeps data keys that key managers have unwrapped. It is nil if each is unwrapped again.
	DataKeys *datakeycache.Cache
	// Providers counts changes of the key providers. It may be nil if there are none.
	Providers func() uint64
	// FIPS turns off what FIPS 140-3 does not approve: RSA, which OpenTDF's clients use with SHA-1 only, and X-Wing, which has X25519.
	FIPS bool
	// Observer learns what becomes of requests. It may be nil.
	Observer Observer
	// Now returns the time, [time.Now] if it is nil.
	Now    func() time.Time
	Logger *slog.Logger
}

// Service is a key access service. It is safe for concurrent use.
type Service struct {
	Options
	// troubles limits how often the log has failures of key managers.
	troubles *rate.Sometimes
}

// New returns a service.
func New(options Options) *Service {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Providers == nil {
		options.Providers = func() uint64 { return 0 }
	}
	if options.Observer == nil {
		options.Observer = unobserved{}
	}
	return &Service{Options: options, troubles: &rate.Sometimes{Interval: 10 * time.Second}}
}

// The results of data keys.
const (
	permit = "permit"
	fail   = "fail"
)

// Texts of failures. Clients look for "InvalidArgument", "PermissionDenied" and "desc = bad request" in them.
const (
	// textBadRequest is the text of every failure that depends on a data key or a private key.
	textBadRequest = "rpc error: code = InvalidArgument desc = bad request"
	textForbidden  = "rpc error: code = PermissionDenied desc = forbidden"
	// textUnsupported comes before the text of a failure that depends on neither.
	textUnsupported = "rpc error: code = InvalidArgument desc = "
	// textUnavailable comes before the reason why another service has no answer.
	textUnavailable = "rpc error: code = Unavailable desc = "
)

// rewrap answers a request for data keys.
func (s *Service) rewrap(ctx context.Context, token string) (*kas.RewrapResponse, error) {
	who, ok := callerOf(ctx)
	if !ok { // the caller forgot to put the handler in front
		return nil, connect.NewError(connect.CodeInternal, errors.New("the caller of the request was not checked"))
	}
	response, first, err := s.answer(ctx, token, who)
	who.observed.note(err)
	if err == nil && first {
		return asFirst(response)
	}
	return response, err
}

// answer returns the results for a request, and whether it is of the first version.
func (s *Service) answer(ctx context.Context, token string, who admitted) (response *kas.RewrapResponse, first bool, err error) {
	r, err := s.read(token, who.Caller)
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Limits.Time)
	defer cancel()
	r.origin.Address = who.address
	r.locate(nil)
	response, err = r.respond(ctx, federation.Request{
		Authorization: who.credentials.Authorization, Proof: strings.Join(who.credentials.Proofs, " "), Path: who.credentials.URL, Signed: token,
	})
	return response, r.body.First, err
}

// read reads the signed request of a caller.
func (s *Service) read(token string, who caller.Caller) (*release, error) {
	text, err := request.Open(token, who.ProofKey, s.Now())
	if err != nil {
		return nil, connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("signed_request_token: %w", err))
	}
	body, err := request.Parse(text, s.Limits.Limits)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("signed_request_token: %w", err))
	}
	recipient, err := wrapping.NewRecipient(body.ClientKey, s.FIPS)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("clientPublicKey %w", err))
	}
	return &release{Service: s, who: who, ring: s.Keys(), recipient: recipient, body: body}, nil
}

// respond returns the results for the data keys that [release.locate] has found. Peers are asked while this service works on its own.
func (r *release) respond(ctx context.Context, asked federation.Request) (*kas.RewrapResponse, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the requests to peers if this service fails
	defer cancel()
	gather := r.askPeers(ctx, asked)
	response := &kas.RewrapResponse{SessionPublicKey: r.recipient.SessionKey()}
	for i, wanted := range r.body.Policies {
		results, err := r.policy(ctx, wanted, r.located[i])
		if err != nil {
			return nil, err
		}
		response.Responses = append(response.Responses, &kas.PolicyRewrapResult{PolicyId: wanted.GetPolicy().GetId(), Results: results})
	}
	gather(response)
	return response, nil
}

// asFirst makes a response for a request of the first version.
func asFirst(response *kas.RewrapResponse) (*kas.RewrapResponse, error) {
	result := response.GetResponses()[0].GetResults()[0]
	switch text := result.GetError(); {
	case result.GetStatus() == permit:
		response.EntityWrappedKey = result.GetKasWrappedKey()
		return response, nil
	case text == textForbidden:
		return nil, connect.NewError(connect.CodePermissionDenied, errors.New(text))
	case strings.HasPrefix(text, textUnavailable):
		return nil, connect.NewError(connect.CodeUnavailable, errors.New(text))
	default:
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New(text))
	}
}

// release is one request for data keys.
type release struct {
	*Service
	who       caller.Caller
	ring      *keyring.Ring
	recipient *wrapping.Recipient
	body      request.Body
	// located has where each data key is, by policy and place in the policy.
	located [][]location
	asking  *federation.Asking // nil if no peer is asked
	origin  tdfpolicy.Origin
}

// atOneTime is the maximum number of data keys of one policy that are unwrapped at one time: the
// work of a key manager takes the service no time of a processor.
const atOneTime = 8

// policy returns the results for the data keys of one policy, in their order. Data keys of other services have no result yet.
func (r *release) policy(ctx context.Context, wanted *kas.UnsignedRewrapRequest_WithPolicyRequest, located []location) ([]*kas.KeyAccessRewrapResult, error) {
	parsed, parseErr := tdfpolicy.Parse(wanted.GetPolicy().GetBody())
	results := make([]*kas.KeyAccessRewrapResult, len(wanted.GetKeyAccessObjects()))
	var here []int
	for i, object := range wanted.GetKeyAccessObjects() {
		results[i] = &kas.KeyAccessRewrapResult{KeyAccessObjectId: object.GetKeyAccessObjectId(), Status: fail}
		if located[i].here {
			here = append(here, i)
		}
	}
	err := r.all(here, func(i int) error {
		switch err := ctx.Err(); {
		case errors.Is(err, context.DeadlineExceeded):
			return connect.NewError(connect.CodeDeadlineExceeded, errors.New("the time for the request is over: ask for fewer data keys, or name the key id of each"))
		case err != nil:
			return connect.NewError(connect.CodeCanceled, err)
		}
		object := wanted.GetKeyAccessObjects()[i].GetKeyAccessObject()
		return r.result(ctx, results[i], located[i], sealed{release: r, KeyAccess: object, body: wanted.GetPolicy().GetBody(), parsed: parsed, readable: parseErr == nil})
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// all does work for each data key, and returns the first error.
func (r *release) all(objects []int, work func(int) error) error {
	one := func(i int) (err error) {
		defer r.survive(&err)
		return work(i)
	}
	if len(objects) == 1 { // most requests have one data key, and an extra goroutine would only cost time
		return one(objects[0])
	}
	var group errgroup.Group
	group.SetLimit(1)
	if r.ring.Managed() {
		group.SetLimit(atOneTime)
	}
	for _, i := range objects {
		group.Go(func() error { return one(i) })
	}
	return group.Wait()
}

// survive converts a panic to an error. It is needed in goroutines of the service, because net/http recovers only panics
// in the goroutine of the handler.
func (r *release) survive(err *error) {
	if recovered := recover(); recovered != nil {
		r.logDefect("Rewrap", recovered)
		*err = connect.NewError(connect.CodeInternal, errors.New(textDefect))
	}
}

// result completes the result for one data key.
func (r *release) result(ctx context.Context, result *kas.KeyAccessRewrapResult, at location, o sealed) error {
	dataKey, text := o.dataKey(ctx)
	r.Observer.DataKey(resultOf(text))
	if text != "" {
		result.Result = &kas.KeyAccessRewrapResult_Error{Error: text}
		return nil
	}
	defer clear(dataKey)
	wrapped, err := r.recipient.Wrap(dataKey)
	if err != nil {
		return connect.NewError(connect.CodeInternal, errors.New("the data key cannot be wrapped for the client"))
	}
	result.Status = permit
	result.Result = &kas.KeyAccessRewrapResult_KasWrappedKey{KasWrappedKey: wrapped}
	r.released(at)
	return nil
}

// unsupported returns why the service has no answer for an object, whatever is in it.
func (r *release) unsupported(object *kas.KeyAccess) string {
	switch kind := wrapping.Type(object.GetKeyType()); {
	case len(object.GetHeader()) > 0:
		return "found the header of a NanoTDF, expected a key access object of a TDF"
	case kind == wrapping.RSA && r.FIPS:
		return `this service does not use RSA-OAEP with SHA-1, which the type "wrapped" needs`
	case kind == wrapping.Hybrid && r.FIPS:
		return `this service does not use X25519, which the type "hybrid-wrapped" needs`
	case slices.Contains(wrapping.Types, kind):
		return ""
	default:
		return fmt.Sprintf("found the type %.40q, expected one of %q", kind, wrapping.Types)
	}
}
