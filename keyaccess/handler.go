// SPDX-License-Identifier: Apache-2.0

package keyaccess

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/wellknownconfiguration"
	"github.com/crypto-broker/crypto-broker-operator/broker/defect"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/limit"
)

// Procedures of Connect and gRPC.
const (
	procedurePublicKey       = "/kas.AccessService/PublicKey"
	procedureLegacyPublicKey = "/kas.AccessService/LegacyPublicKey"
	procedureRewrap          = "/kas.AccessService/Rewrap"
	procedureConfiguration   = "/wellknownconfiguration.WellKnownService/GetWellKnownConfiguration"
	procedureHealth          = "/grpc.health.v1.Health/Check"
)

// maxOpenRequest is the size in bytes of the largest request that needs no token, after decompression, and maxOpenRequests the number
// of those that are served at one time.
const maxOpenRequest, maxOpenRequests = 16 << 10, 256

// Handler returns the handler of all requests of clients.
func (s *Service) Handler() http.Handler {
	// Requests may be compressed, and results are not: wrapped keys get no smaller, and gzip took two fifths of the time of a hit.
	options := []connect.HandlerOption{connect.WithReadMaxBytes(s.Limits.BodyBytes), connect.WithCompressMinBytes(math.MaxInt)}
	open := []connect.HandlerOption{connect.WithReadMaxBytes(maxOpenRequest)}
	reading := append([]connect.HandlerOption{connect.WithIdempotency(connect.IdempotencyNoSideEffects)}, open...)

	mux := http.NewServeMux()
	few := s.few()
	mux.Handle(procedurePublicKey, few(connect.NewUnaryHandler(procedurePublicKey, s.connectPublicKey, reading...)))
	mux.Handle(procedureLegacyPublicKey, few(connect.NewUnaryHandler(procedureLegacyPublicKey, s.connectLegacyPublicKey, reading...)))
	mux.Handle(procedureRewrap, s.authenticated(connect.NewErrorWriter(options...), connect.NewUnaryHandler(procedureRewrap, s.connectRewrap, options...)))
	mux.Handle(procedureConfiguration, few(connect.NewUnaryHandler(procedureConfiguration, s.connectConfiguration, reading...)))
	mux.Handle(procedureHealth, few(connect.NewUnaryHandler(procedureHealth, connectHealth, open...)))
	mux.HandleFunc("GET "+pathPublicKey, s.servePublicKey)
	mux.HandleFunc("GET "+pathLegacyPublicKey, s.serveLegacyPublicKey)
	mux.Handle("POST "+pathRewrap, s.authenticated(jsonErrors{}, http.HandlerFunc(s.serveRewrap)))
	mux.HandleFunc("GET "+pathConfiguration, s.serveConfiguration)
	if s.Peers != nil {
		s.Peers.Handle(mux)
		mux.Handle("POST "+federation.PathRewrap, s.fromPeers())
	}
	return s.surviving(ending(mux))
}

// restTime is how long a client may take to send the rest of a body that nobody reads.
const restTime = time.Second

// ending bounds how long a request lasts after its answer. A server reads the rest of a body, so that the connection can have another
// request. Strangers could hold all connections with bodies that come slowly.
func ending(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(restTime)) // it fails only if the connection has ended
		}
	})
}

// few returns what bounds the requests with a body that need no token. Strangers may send their bodies slowly.
func (s *Service) few() func(http.Handler) http.Handler {
	shedder, err := limit.NewShedder(limit.Load{InFlight: maxOpenRequests})
	if err != nil {
		panic(err) // the number is above 0
	}
	write := connect.NewErrorWriter()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			leave, err := shedder.Enter(r.Context())
			if err != nil {
				s.refuse(write, w, r, err)
				return
			}
			defer leave()
			next.ServeHTTP(w, r)
		})
	}
}

// surviving answers a request that panics, and logs no text of the panic, which could quote a key.
func (s *Service) surviving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recovered := recover(); recovered != nil {
				s.logDefect(r.Pattern, recovered)
				http.Error(w, textDefect, http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

const textDefect = "failed because of a defect in the service; its log has the details"

// logDefect logs a panic, and no text of it, which could quote a key.
func (s *Service) logDefect(method string, recovered any) {
	cause, stack := defect.Describe(recovered)
	s.Logger.Error("a request failed because of a defect; other requests are not affected", "method", method, "cause", cause, "stack", stack)
}

func (s *Service) connectPublicKey(_ context.Context, in *connect.Request[kas.PublicKeyRequest]) (*connect.Response[kas.PublicKeyResponse], error) {
	return respond(s.publicKey(in.Msg))
}

func (s *Service) connectLegacyPublicKey(_ context.Context, in *connect.Request[kas.LegacyPublicKeyRequest]) (*connect.Response[wrapperspb.StringValue], error) {
	text, err := s.legacyPublicKey(in.Msg)
	return respond(wrapperspb.String(text), err)
}

func (s *Service) connectRewrap(ctx context.Context, in *connect.Request[kas.RewrapRequest]) (*connect.Response[kas.RewrapResponse], error) {
	return respond(s.rewrap(ctx, in.Msg.GetSignedRequestToken()))
}

func (s *Service) connectConfiguration(context.Context, *connect.Request[wellknownconfiguration.GetWellKnownConfigurationRequest]) (*connect.Response[wellknownconfiguration.GetWellKnownConfigurationResponse], error) {
	configuration, err := structpb.NewStruct(s.configuration())
	return respond(&wellknownconfiguration.GetWellKnownConfigurationResponse{Configuration: configuration}, err)
}

// connectHealth says that the service serves, because it has answered.
func connectHealth(context.Context, *connect.Request[healthpb.HealthCheckRequest]) (*connect.Response[healthpb.HealthCheckResponse], error) {
	return respond(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil)
}

func respond[T any](message *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

// errorWriter writes an error in the protocol of a request.
type errorWriter interface {
	Write(w http.ResponseWriter, r *http.Request, err error) error
}

// callerKey is the key of the admitted caller in a context.
type callerKey struct{}

// admitted is the caller of a request that is served, with the credentials of the request.
type admitted struct {
	caller.Caller
	credentials caller.Request
	observed    *observation
	// address is the IP address of the other end of the connection.
	address string
}

func callerOf(ctx context.Context) (admitted, bool) {
	who, ok := ctx.Value(callerKey{}).(admitted)
	return who, ok
}

// authenticated has next serve requests of callers who are known and who make no more of them than they may. It refuses others
// before it reads a body, and before it looks at a token if there are too many requests for that.
func (s *Service) authenticated(write errorWriter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		observed := s.observe(FromClient)
		defer observed.end()
		if s.Shedder != nil {
			leave, err := s.Shedder.Enter(r.Context())
			if err != nil {
				observed.shed(err)
				s.refuse(write, w, r, err)
				return
			}
			defer leave()
		}
		who, err := s.admit(r)
		if err != nil {
			observed.note(err)
			s.refuse(write, w, r, err)
			return
		}
		who.observed = observed
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
		if observed.outcome == "" { // next has refused the request before it came to rewrap
			observed.outcome = Unreadable
		}
	})
}

// admit returns who sends a request.
func (s *Service) admit(r *http.Request) (admitted, error) {
	credentials, err := caller.FromHTTP(r)
	if err != nil {
		return admitted{}, err
	}
	who, err := s.Verifier.Verify(r.Context(), credentials)
	if err == nil && s.Rates != nil {
		err = s.Rates.Admit(who)
	}
	return admitted{Caller: who, credentials: credentials, address: address(r)}, err
}

// address returns the IP address of the other end of a connection, or the empty string.
func address(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr) // empty if there is none
	return host
}

// refuse answers a request that is not served.
func (s *Service) refuse(write errorWriter, w http.ResponseWriter, r *http.Request, err error) {
	for _, challenge := range s.Verifier.Challenges(err) {
		w.Header().Add("WWW-Authenticate", challenge)
	}
	if tooMany := (*limit.Refused)(nil); errors.As(err, &tooMany) {
		w.Header().Set("Retry-After", tooMany.Seconds())
	}
	_ = write.Write(w, r, connect.NewError(codeOf(err), err)) // the client has gone if this fails
}

// codeOf returns the code for an error of a Verifier or a limit.
func codeOf(err error) connect.Code {
	if tooMany := (*limit.Refused)(nil); errors.As(err, &tooMany) {
		return connect.CodeResourceExhausted
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return connect.CodeCanceled
	}
	refused := (*caller.Error)(nil)
	if errors.As(err, &refused) {
		switch refused.Reason {
		case caller.InvalidRequest:
			return connect.CodeInvalidArgument
		case caller.Unavailable:
			return connect.CodeUnavailable
		}
	}
	return connect.CodeUnauthenticated
}
