// SPDX-License-Identifier: Apache-2.0

// Package server serves webhooks to an API server on a port that anybody in the
// cluster can connect to.
//
// It bounds the number of connections, and of connections in their TLS handshake, and divides
// both among the addresses of clients by package shares. A connection without a complete request
// is closed after a time. The server speaks HTTP/1.1 only, as an API server does with a webhook
// behind a Service. With HTTP/2, one connection could have many requests, and hold the bytes of
// several requests in memory.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// maxConnections is the maximum number of connections that all clients may have at a time.
	// The server closes a connection beyond a client's share at once. An API server has one
	// connection for each request in flight.
	maxConnections = 1024

	// maxHandshakes is the maximum number of connections that may be in their TLS handshake at a
	// time; others wait for their turn.
	maxHandshakes = 256

	// maxHeaderBytes is the maximum size of a request's headers. net/http adds 4 KiB.
	maxHeaderBytes = 16 << 10

	// handshakeTimeout is how long a client has for its handshake, including the wait for its
	// turn. headerTimeout is how long it has for a request's headers.
	handshakeTimeout = 5 * time.Second
	headerTimeout    = 5 * time.Second

	// idleTimeout is how long a connection may be without a request. It is longer than the 90
	// seconds after which API servers close a connection. If the server closed it first, a
	// request that arrives at that moment would fail.
	idleTimeout = 2 * time.Minute

	// requestTimeout bounds a request from its headers to its answer. An API server
	// waits thirty seconds at most.
	requestTimeout = 40 * time.Second

	// shutdownTimeout is how long requests in flight may take when the server ends.
	shutdownTimeout = 15 * time.Second
)

// Options are the settings of a server.
type Options struct {
	// Host is the address to listen on, or empty for all addresses. Port is the TCP port.
	Host string
	Port int
	// TLS changes the configuration of TLS. It has to set GetCertificate.
	TLS func(*tls.Config)
}

// Server is a webhook server for a manager of controller-runtime.
type Server struct {
	webhook.Server // registers handlers
	options        Options
	started        atomic.Bool
}

var _ webhook.Server = &Server{}

// New makes a server. The manager starts it.
func New(options Options) *Server {
	return &Server{
		Server:  webhook.NewServer(webhook.Options{WebhookMux: http.NewServeMux()}),
		options: options,
	}
}

// StartedChecker returns a check that fails until the server listens.
func (s *Server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.started.Load() {
			return errors.New("the webhooks are not served yet")
		}
		return nil
	}
}

// Start serves until the context ends, and then waits for the requests in flight.
func (s *Server) Start(ctx context.Context) error {
	address := net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port))
	listening, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("the webhooks cannot be served at %s: %w", address, err)
	}
	return s.serve(ctx, listening)
}

// serve serves a listener until the context ends.
func (s *Server) serve(ctx context.Context, on net.Listener) error {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	s.options.TLS(config)
	config.NextProtos = []string{"http/1.1"}

	server := &http.Server{
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler:           s.WebhookMux(),
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if server.Shutdown(deadline) != nil {
			_ = server.Close() // the remaining connections have had enough time
		}
	})
	s.started.Store(true)
	if err := server.Serve(share(on, config)); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	<-ended
	return nil
}
