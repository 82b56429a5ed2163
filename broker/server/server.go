// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/tuning"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

// Server answers requests of all generations of the wire contract. It answers
// UNAVAILABLE, and its health is NOT_SERVING, until Use is called.
type Server struct {
	logger  *slog.Logger
	metrics *telemetry.Metrics
	tracer  *tracing.Tracer // nil where there is none
	keys    keys.Provider   // nil where there is none
	// development admits one measurement at a time, nil where the development
	// service is off.
	development chan struct{}
	grpc        *grpc.Server
	health      *health.Server

	serving atomic.Pointer[serving]

	// maxStreams is for each connection.
	maxStreams uint32

	// streams ends the streams that go on for as long as the client likes.
	memory     memory
	streams    context.Context
	endStreams context.CancelFunc
	// idleTime is how long a client may take to send the next part of a stream.
	idleTime  time.Duration
	exchanges exchanges
}

// serving is a set of profiles with what requests need beside each.
type serving struct {
	set      *profile.Set
	profiles map[string]servedProfile
}

type servedProfile struct {
	*profile.Compiled
	counters *telemetry.Counters
	// warning is that of a deprecated profile as metadata has it, else nil.
	warning []byte
	// refusals say why operations are refused where FIPS 140-3 is required, nil
	// where none is.
	refusals *[engine.Operations]string
}

// Sizes and times of connections.
const (
	// maxHeaderSize bounds the headers of a request in bytes; gRPC's own limit is
	// 16 MiB.
	maxHeaderSize = 64 << 10
	// handshakeTime is how long a connection may take to begin.
	handshakeTime = 5 * time.Second
	// minPingInterval is how often clients may ask whether the broker is still
	// there. gRPC's own, five minutes, ends connections of clients that are set
	// to less.
	minPingInterval = 5 * time.Second
)

// DefaultMaxStreams is how many requests and streams a connection may have at one
// time where nothing else was said.
const DefaultMaxStreams = 256

// Option changes what a server has.
type Option func(*Server)

// WithKeys gives the keys that requests name by id. Without it, such requests
// are refused.
func WithKeys(provider keys.Provider) Option {
	return func(s *Server) { s.keys = provider }
}

// WithMaxStreams changes how many requests and streams a connection may have at
// one time; a client that has more of them waits. Without it, that is
// DefaultMaxStreams.
func WithMaxStreams(n uint32) Option {
	return func(s *Server) { s.maxStreams = max(1, n) }
}

// New makes a server. Nothing listens yet.
func New(logger *slog.Logger, metrics *telemetry.Metrics, options ...Option) *Server {
	s := &Server{logger: logger, metrics: metrics, health: health.NewServer(), idleTime: defaultIdleTime}
	s.memory.total, s.maxStreams = defaultMemory, DefaultMaxStreams
	for _, option := range options {
		option(s)
	}
	s.memory.patience = s.idleTime
	s.memory.open()
	s.shareExchanges()
	s.streams, s.endStreams = context.WithCancel(context.Background())
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	s.grpc = grpc.NewServer(append(tuning.ServerOptions(),
		grpc.Creds(callerCredentials{}),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(maxMessageSize),
		grpc.MaxSendMsgSize(maxMessageSize),
		grpc.MaxConcurrentStreams(s.maxStreams),
		grpc.MaxHeaderListSize(maxHeaderSize),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.recoverUnary),
		grpc.StreamInterceptor(s.boundStream),
	)...)
	s.grpc.RegisterService(s.cryptoGrpc(), nil)
	s.grpc.RegisterService(s.cryptoService(), nil)
	s.grpc.RegisterService(s.streamService(), nil)
	s.grpc.RegisterService(s.policyService(), nil)
	if s.development != nil {
		s.grpc.RegisterService(s.cryptoGrpcDev(), nil)
		s.grpc.RegisterService(s.cryptoDevService(), nil)
	}
	healthpb.RegisterHealthServer(s.grpc, s.health)
	s.registerReflection()
	return s
}

// Use serves a set of profiles from now on. Requests under way finish with the
// set they began with.
func (s *Server) Use(set *profile.Set) {
	counters := s.metrics.Profiles(set)
	next := &serving{set: set, profiles: make(map[string]servedProfile, set.Len())}
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		next.profiles[name] = servedProfile{p, counters[name], warningOf(p), refusalsOf(p)}
	}
	s.serving.Store(next)
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
}

// Serving tells whether there ever was a set of profiles to serve.
func (s *Server) Serving() bool { return s.serving.Load() != nil }

// Serve accepts connections on all sockets until Shutdown, which is no error.
func (s *Server) Serve(sockets *Sockets) error {
	var group errgroup.Group
	watching, done := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { s.watchMemory(watching) })
	defer func() {
		done()
		watch.Wait()
	}()
	for _, listener := range sockets.listeners {
		listener.memory = &s.memory
		group.Go(func() error {
			err := s.grpc.Serve(listener)
			if err == nil || errors.Is(err, grpc.ErrServerStopped) {
				return nil
			}
			return fmt.Errorf("serve %s: %w", listener.path, err)
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

// recoverUnary keeps a defect in a service of gRPC from ending the broker.
func (s *Server) recoverUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			reply, err = nil, s.panicked(info.FullMethod, cause)
		}
	}()
	return handler(ctx, request)
}

// boundStream does the same for streams and ends them at shutdown.
func (s *Server) boundStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = s.panicked(info.FullMethod, cause)
		}
	}()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	conn := connOf(ctx)
	s.memory.stream(conn, 1)
	defer s.memory.stream(conn, -1)
	defer context.AfterFunc(s.streams, cancel)()
	return handler(srv, boundedStream{stream, ctx})
}

type boundedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s boundedStream) Context() context.Context { return s.ctx }
