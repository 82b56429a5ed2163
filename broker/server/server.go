// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/rpc"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/stream"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wirev0"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wirev1"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/tuning"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
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
	// endStreams ends the context of the service, and with it streams that go on for as
	// long as the client likes.
	endStreams context.CancelFunc
	callers    []*flow.Caller // once Serve was called

	// maxStreams is for each connection, memory in bytes and maxConnections for all.
	maxStreams     uint32
	memory         int64
	maxConnections int
}

// Sizes and times of connections.
const (
	// handshakeTime is how long a connection may take to begin.
	handshakeTime = 5 * time.Second
	// minPingInterval is how often clients may ask whether the broker is still
	// there. gRPC's own, five minutes, ends connections of clients that are set
	// to less.
	minPingInterval = 5 * time.Second
)

// DefaultMaxStreams is how many requests and streams a connection may have at one
// time where nothing else was said.
const DefaultMaxStreams = 100

// Option changes what a server has.
type Option func(*Server)

// WithKeys gives the keys that requests name by id. Without it, such requests
// are refused.
func WithKeys(provider keys.Provider) Option {
	return func(s *Server) { s.service.Keys = provider }
}

// WithMaxStreams changes how many requests and streams a connection may have at
// one time; a client that has more of them waits. Without it, that is
// DefaultMaxStreams.
func WithMaxStreams(n uint32) Option {
	return func(s *Server) { s.maxStreams = max(1, n) }
}

// WithOneProcessorForQuickCalls makes the process use one processor while calls are
// quick and come one at a time, and as many as Go does otherwise: see docs/limits.md. It
// changes GOMAXPROCS of the whole process while there are calls.
func WithOneProcessorForQuickCalls() Option {
	return func(s *Server) { s.service.Workers.Adapt() }
}

// UseProcessors makes the process use all processors for a second, where
// WithOneProcessorForQuickCalls lets it choose. It is for work that does not come by
// calls.
func (s *Server) UseProcessors() { s.service.Workers.Processors.UseAll() }

// defaultMemory is what WithMemory changes.
const defaultMemory = 128 << 20

// WithMemory bounds the bytes that the messages of all callers take while they
// are served, and thereby how many calls, streams and connections there may be:
// see docs/limits.md. Without it, that is 128 MiB. It should be no less than 4 MiB
// for each caller.
func WithMemory(bytes int64) Option {
	return func(s *Server) { s.memory = max(1, bytes) }
}

// WithMaxConnections bounds the connections of all callers together, below what
// their memory allows: each takes a file descriptor.
func WithMaxConnections(n int) Option {
	return func(s *Server) { s.maxConnections = max(1, n) }
}

// WithIdleTime changes how long a stream waits for a client that has to send the
// next part of an input, or to read its replies. Without it, that is a minute.
func WithIdleTime(d time.Duration) Option {
	return func(s *Server) { s.service.IdleTime = d }
}

// WithTracer makes spans of the calls that the tracer samples. Without it, or with
// nil, there are none.
func WithTracer(tracer *tracing.Tracer) Option {
	return func(s *Server) { s.service.Tracer = tracer }
}

// WithDevelopmentService offers Benchmark and FakeEndpoint, which cost the broker
// time and have no place where others depend on it. Without it, calls of them
// are answered with UNIMPLEMENTED.
func WithDevelopmentService() Option {
	return func(s *Server) { s.service.OfferDevelopment() }
}

// New makes a server. Nothing listens yet.
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
		experimental.BufferPool(flow.Buffers),
		grpc.Creds(flow.Credentials{}),
		grpc.InTapHandle(flow.NoteCall),
		grpc.ForceServerCodecV2(flow.NewCodec()),
		grpc.MaxRecvMsgSize(flow.MaxMessageSize),
		grpc.MaxSendMsgSize(flow.MaxMessageSize),
		grpc.MaxConcurrentStreams(s.maxStreams),
		grpc.MaxHeaderListSize(flow.MaxHeaderSize),
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
	others := rpc.NewGuard(s.service, s.grpc)
	others.RegisterService(policyService(s.service), nil)
	healthpb.RegisterHealthServer(others, s.health)
	registerReflection(others, s.service.OffersDevelopment())
	return s
}

// Use serves a set of profiles from now on. Requests under way finish with the
// set they began with.
func (s *Server) Use(set *profile.Set) {
	s.service.Use(set)
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
}

// Serving reports whether there ever was a set of profiles to serve.
func (s *Server) Serving() bool { return s.service.IsServing() }

// Serve accepts connections on all sockets until Shutdown, which is no error.
func (s *Server) Serve(sockets *unixsocket.Sockets) error {
	var group errgroup.Group
	watching, done := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	listeners := sockets.Listeners()
	s.callers = make([]*flow.Caller, len(listeners))
	share := flow.ShareOf(s.memory, s.maxConnections, len(listeners))
	for i, listener := range listeners {
		s.callers[i] = flow.NewCaller(listener.Identity().Name, share, &s.service.Workers.Processors)
	}
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
	return group.Wait()
}

// Shutdown tells clients that the broker goes, accepts no more requests and
// waits for those under way until ctx ends. Then it breaks them off, and
// returns the context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.health.Shutdown()
	s.endStreams()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
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
