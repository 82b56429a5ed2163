// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/defect"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
)

// Times of connections.
const (
	handshakeTime = 10 * time.Second
	// idleTime is how long a connection without calls stays. A broker connects again when it
	// needs to.
	idleTime = 10 * time.Minute
	// age is how long a connection is used, so that connections spread over new replicas.
	age = 30 * time.Minute
	// minPingInterval is the shortest time between two keepalive pings of a client.
	minPingInterval = 5 * time.Second
)

// Server is a key gateway.
type Server struct {
	gatewayv1.UnimplementedKeyGatewayServiceServer

	keysOf func(namespace string) keys.Provider
	access Access
	// certificates reports whether brokers need a certificate of their pod.
	certificates bool
	log          *slog.Logger
	grpc         *grpc.Server

	calls, pods, connections *counts
	failedHandshakes         atomic.Uint64
}

// Options of a server.
type Options struct {
	// KeysOf returns the provider of all keys that pods of a namespace may reach. The names that
	// the provider gets include the use of the key. KeysOf has to be cheap.
	KeysOf func(namespace string) keys.Provider
	Access Access
	// Certificate returns the certificate for a connection, see [tls.Config].
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// BrokerAuthorities returns the authorities of the certificates of brokers, for a connection.
	// Brokers then need a certificate of their pod. It is nil if they need none.
	BrokerAuthorities func() (*x509.CertPool, error)
	Logger            *slog.Logger
	// Observe is called at the end of each call, with the name of its method. It may be nil.
	Observe func(method string, code codes.Code, took time.Duration)
}

// New returns a server that does not serve yet.
func New(o Options) *Server {
	s := &Server{
		keysOf: o.KeysOf, access: o.Access, certificates: o.BrokerAuthorities != nil, log: o.Logger,
		calls: newCounts(maxCalls, maxCallsOfAddress), pods: newCounts(maxCalls, maxRequestsOfPod),
		connections: newCounts(MaxConnections, maxConnectionsOfAddress),
	}
	s.grpc = grpc.NewServer(
		grpc.Creds(s.credentials(o)),
		grpc.InTapHandle(s.admit),
		grpc.ForceServerCodecV2(gateway.Codec{}),
		grpc.ChainUnaryInterceptor(observed(o.Observe), s.survive),
		grpc.MaxRecvMsgSize(gateway.MaxMessageSize), grpc.MaxSendMsgSize(gateway.MaxMessageSize),
		grpc.MaxConcurrentStreams(gateway.MaxCallsOfConnection),
		grpc.MaxHeaderListSize(gateway.MaxTokenSize+4<<10),
		grpc.StaticStreamWindowSize(64<<10), grpc.StaticConnWindowSize(64<<10),
		grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: idleTime, MaxConnectionAge: age, MaxConnectionAgeGrace: maxDeadline, Time: time.Minute, Timeout: handshakeTime,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval}),
	)
	gatewayv1.RegisterKeyGatewayServiceServer(s.grpc, s)
	return s
}

// Serve serves until Shutdown is called, which is no error.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(listener{l, s.connections}); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Shutdown makes brokers connect to other replicas, and waits until ctx ends for the calls that
// have begun.
func (s *Server) Shutdown(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.grpc.Stop)
	defer stop()
	s.grpc.GracefulStop()
}

// Load has the current numbers of a server.
type Load struct{ Connections, Calls int }

// Load returns the current numbers of the server.
func (s *Server) Load() Load { return Load{s.connections.now(), s.calls.now()} }

// FailedHandshakes returns how many connections have ended because their TLS handshake failed.
func (s *Server) FailedHandshakes() uint64 { return s.failedHandshakes.Load() }

// survive answers a call that panics, and logs no text of the panic, which could quote a key.
func (s *Server) survive(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			cause, stack := defect.Describe(recovered)
			s.log.LogAttrs(ctx, slog.LevelError, "a call failed because of a defect in the key gateway; other requests are not affected",
				slog.String("method", info.FullMethod), slog.String("cause", cause), slog.String("stack", stack))
			reply, err = nil, status.Error(codes.Internal, "failed because of a defect in the key gateway; its log has the details")
		}
	}()
	return handle(ctx, r)
}

func observed(observe func(string, codes.Code, time.Duration)) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		began := time.Now()
		reply, err := handle(ctx, r)
		if observe != nil {
			observe(info.FullMethod, status.Code(err), time.Since(began))
		}
		return reply, err
	}
}
