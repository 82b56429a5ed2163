// SPDX-License-Identifier: Apache-2.0

// Package dashboard serves a page about the fleet on the loopback interface, only for the user
// who has started the command.
//
// Everything is below a path with a secret, which only the terminal of the user shows. So other users of
// the machine, and pages of other origins, can't read the fleet or ask anything with the rights of
// the user. The name of the host is checked against DNS rebinding, and the origin of each request
// that asks for something.
package dashboard

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/fleet"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/rollouts"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

//go:embed page
var embedded embed.FS

// Ask requests an action on the rollout of a profile with the rights of the user, and returns a
// sentence about its effect.
type Ask func(ctx context.Context, source downgrade.Source, action rollouts.Action, seen rollouts.Seen) (then string, err error)

// Server serves the page.
type Server struct {
	listener net.Listener
	secret   string
	ask      Ask
	http     http.Server

	mu      sync.Mutex // guards what is below
	state   []byte     // the fleet as JSON; nil if there is none yet
	changed chan struct{}
	streams int
}

const (
	// maxStreams is the maximum number of pages that can be open at a time.
	maxStreams = 16
	// maxRequest bounds the body of a request, in bytes.
	maxRequest = 4096
	// heartbeat is the time after which a page gets a message although nothing has changed.
	heartbeat = 15 * time.Second
	// writeTimeout bounds how long a page may take for one state.
	writeTimeout = 30 * time.Second
)

// Listen returns a server that listens on 127.0.0.1, on a free port if port is 0.
func Listen(port uint16, ask Ask) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return nil, err
	}
	return &Server{listener: listener, secret: rand.Text(), ask: ask, changed: make(chan struct{})}, nil
}

// URL returns the address of the page with its secret.
func (s *Server) URL() string { return fmt.Sprintf("http://%s/%s/", s.listener.Addr(), s.secret) }

// Publish sends a state of the fleet to all open pages.
func (s *Server) Publish(f *fleet.Fleet) error {
	state, err := json.Marshal(f)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// Run serves until the context ends.
func (s *Server) Run(ctx context.Context) error {
	s.http = http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := context.AfterFunc(ctx, func() { _ = s.http.Close() }) // streams never end by themselves
	defer stopped()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler returns the handler of all requests.
func (s *Server) handler() http.Handler {
	page, err := fs.Sub(embedded, "page")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	below := "/" + s.secret
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(page))
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("POST /rollouts", s.rollouts)
	return s.guarded(http.StripPrefix(below, mux))
}
