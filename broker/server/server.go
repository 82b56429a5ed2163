// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/buffers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/sessiongateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/stream"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wiresession"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wirev0"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wirev1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/tuning"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// Server answers requests of all generations of the wire contract. It answers
// UNAVAILABLE, and its health is NOT_SERVING, until Use is called.
type Server struct {
	logger  *slog.Logger
	service *rpc.Service
	grpc    *grpc.Server
	health  *health.Server
	// endStreams ends the context of the service, and with it the streams, whose clients could
	// otherwise keep them open.
	endStreams context.CancelFunc
	callers    []*flow.Caller // once Serve was called
	// gateway is the session gateway, and gatewayListener is its listener. Both are nil without a
	// session gateway.
	gateway         *sessiongateway.Gateway
	gatewayListener net.Listener

	// maxStreams is the limit of each connection. memory, in bytes, and maxConnections are
	// the limits of all callers together.
	maxStreams     uint32
	memory         int64
	maxConnections int
}

// Sizes and times of connections.
const (
	// handshakeTime is how long a connection may take to begin. It is long because a new
	// connection waits for its turn to be read behind others with large messages.
	handshakeTime = time.Minute
	// minPingInterval is the shortest time between two keepalive pings of a client.
	// gRPC closes the connection of a client that pings more often. Its default of five
	// minutes is too long for clients that are configured to ping more often.
	minPingInterval = 5 * time.Second
)

// DefaultMaxStreams is the maximum number of requests and streams that a connection may have at
// one time without [WithMaxStreams].
const DefaultMaxStreams = 100

// Option configures a server.
type Option func(*Server)

// WithKeys sets the provider of the keys that requests name by id. Without it, such requests are
// refused.
func WithKeys(provider keys.Provider) Option {
	return func(s *Server) { s.service.Keys = provider }
}

// WithKeyManagers sets the function that returns the key managers that profiles name by the file
// of their settings. cached reports whether keys may be cached. Without it, keys of such profiles
// are refused.
func WithKeyManagers(find func(file string, cached bool) (keys.Provider, error)) Option {
	return func(s *Server) { s.service.Managers = find }
}

// WithSharedSessions sets the store for sessions of profiles whose sessions are shared. Shutdown
// closes it. Without it, such profiles have no sessions.
func WithSharedSessions(shared session.Shared) Option {
	return func(s *Server) { s.service.Sessions.Share(shared) }
}

// WithAudit writes the audit records that profiles ask for. Without it, there are no records, and
// calls of profiles that require them are refused.
func WithAudit(log *audit.Log) Option {
	return func(s *Server) { s.service.Audit = log }
}

// WithMaxStreams changes how many requests and streams a connection may have at
// one time. A client that has more of them waits. The default is [DefaultMaxStreams].
func WithMaxStreams(n uint32) Option {
	return func(s *Server) { s.maxStreams = max(1, n) }
}

// WithOneProcessorForQuickCalls makes the process use one processor while calls are quick and not
// concurrent. Otherwise the process uses Go's default number. The option changes GOMAXPROCS of
// the whole process; see docs/limits.md.
func WithOneProcessorForQuickCalls() Option {
	return func(s *Server) { s.service.Workers.Adapt() }
}

// UseProcessors makes the process use all processors for a second, even with
// [WithOneProcessorForQuickCalls]. It is for work that does not belong to a call.
func (s *Server) UseProcessors() { s.service.Workers.Processors.UseAll() }

// defaultMemory is the limit in bytes without WithMemory.
const defaultMemory = 128 << 20

// WithMemory bounds the bytes that the messages of all callers take while they
// are served, and so the number of calls, streams and connections; see
// docs/limits.md. The default is 128 MiB. It should be at least 4 MiB for each caller.
func WithMemory(bytes int64) Option {
	return func(s *Server) { s.memory = max(1, bytes) }
}

// WithMaxConnections bounds the connections of all callers together, because each
// connection takes a file descriptor. The memory may allow fewer connections. The
// default is no limit besides the memory.
func WithMaxConnections(n int) Option {
	return func(s *Server) { s.maxConnections = max(1, n) }
}

// WithTracer makes spans of the calls that the tracer samples. Without a tracer, or with
// nil, there are no spans.
func WithTracer(tracer *tracing.Tracer) Option {
	return func(s *Server) { s.service.Tracer = tracer }
}

// WithDevelopmentService offers Benchmark and FakeEndpoint. They take much processor
// time, so they are not for production. Without the option, the broker answers calls
// of them with UNIMPLEMENTED.
func WithDevelopmentService() Option {
	return func(s *Server) { s.service.OfferDevelopment() }
}

// SessionGateway has the settings of the session gateway of a server.
type SessionGateway = sessiongateway.Options

// WithSessionGateway serves encrypted sessions by HTTP on a listener, for an application that
// does not implement them. See docs/session-gateway.md. [Server.Serve] closes the listener.
func WithSessionGateway(listener net.Listener, options SessionGateway) Option {
	return func(s *Server) {
		s.gateway, s.gatewayListener = sessiongateway.New(s.service, s.logger, options), listener
	}
}

// New returns a server that does not listen yet; see [Server.Serve].
func New(logger *slog.Logger, metrics *telemetry.Metrics, options ...Option) *Server {
	streams, endStreams := context.WithCancel(context.Background())
	s := &Server{
		logger: logger, service: rpc.NewService(streams, logger, metrics), health: health.NewServer(), endStreams: endStreams,
		memory: defaultMemory, maxConnections: math.MaxInt, maxStreams: DefaultMaxStreams,
	}
	for _, option := range options {
		option(s)
	}
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	s.grpc = grpc.NewServer(append(tuning.ServerOptions(),
		experimental.BufferPool(buffers.Pool),
		grpc.Creds(flow.Credentials{}),
		grpc.InTapHandle(flow.NoteCall),
		grpc.ForceServerCodecV2(flow.NewCodec()),
		grpc.MaxRecvMsgSize(limits.MaxMessageSize),
		grpc.MaxSendMsgSize(limits.MaxMessageSize),
		grpc.MaxConcurrentStreams(s.maxStreams),
		grpc.MaxHeaderListSize(limits.MaxHeaderSize),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
	)...)
	for _, service := range wirev0.Services(s.service) {
		s.grpc.RegisterService(service, nil)
	}
	for _, service := range wirev1.Services(s.service) {
		s.grpc.RegisterService(service, nil)
	}
	s.grpc.RegisterService(stream.NewService(s.service), nil)
	s.grpc.RegisterService(wiresession.NewService(s.service), nil)
	others := rpc.NewGuard(s.service, s.grpc)
	others.RegisterService(policyService(s.service), nil)
	healthpb.RegisterHealthServer(others, s.health)
	registerReflection(others, s.service.OffersDevelopment())
	return s
}

// Use serves a set of profiles from now on. revision is the revision in its signed statement, 0
// without one. Requests that have begun finish with the set that they began with.
func (s *Server) Use(set *profile.Set, revision int64) {
	s.service.Use(set, revision)
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
}

// Serving reports whether Use has been called.
func (s *Server) Serving() bool { return s.service.IsServing() }

// Serve accepts connections on all sockets, and on the listener of the session gateway, until Shutdown. It then returns nil.
func (s *Server) Serve(sockets *unixsocket.Sockets) error {
	var group errgroup.Group
	watching, done := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	listeners := sockets.Listeners()
	s.callers = make([]*flow.Caller, len(listeners))
	count := len(listeners)
	if s.gateway != nil {
		count++
	}
	s.service.Sessions.Limit(s.memory, count)
	share := flow.ShareOf(s.memory, s.maxConnections, count)
	for i, listener := range listeners {
		s.callers[i] = flow.NewCaller(listener.Identity().Name, share, &s.service.Workers.Processors)
	}
	callers := s.callers
	s.service.Metrics.ServeConnections(func(yield func(container string, open int)) {
		for _, caller := range callers {
			yield(caller.Name(), caller.Connections())
		}
	})
	watch.Go(func() { flow.WatchClients(watching, s.logger, s.callers, s.service.IdleTime) })
	defer func() {
		done()
		watch.Wait()
	}()
	for i, listener := range listeners {
		group.Go(func() error {
			err := s.grpc.Serve(flow.NewListener(listener, s.callers[i]))
			if err == nil || errors.Is(err, grpc.ErrServerStopped) {
				return nil
			}
			return fmt.Errorf("serve %s: %w", listener.Path(), err)
		})
	}
	if s.gateway != nil {
		group.Go(func() error {
			return s.gateway.Serve(s.gatewayListener, flow.NewCaller(s.gateway.Name, share, &s.service.Workers.Processors))
		})
	}
	return group.Wait()
}

// Shutdown tells clients that the broker ends, accepts no more requests and waits for
// the requests that have begun. When ctx ends, Shutdown cancels those that are left and
// returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.service.DataKeys.Close()
	defer s.service.Sessions.Close()
	s.health.Shutdown()
	s.endStreams()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var gateway sync.WaitGroup
		if s.gateway != nil {
			gateway.Go(func() { s.gateway.Shutdown(ctx) })
		}
		s.grpc.GracefulStop()
		gateway.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.grpc.Stop()
		<-done
		return ctx.Err()
	}
}
