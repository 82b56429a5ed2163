// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/crypto-broker/crypto-broker-operator/broker/connlimit"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

// maxStatusConnections is the maximum number of connections of the status port, which every pod may reach.
const maxStatusConnections = 64

// statusServer is the HTTP server of the status port.
type statusServer struct {
	http.Server
	connections *connlimit.Limit
	listener    net.Listener // nil if the port is off
}

// listen opens the port, unless the address is 0.
func (s *statusServer) listen(ctx context.Context, address string) (err error) {
	if address == "0" {
		return nil
	}
	var network net.ListenConfig
	if s.listener, err = network.Listen(ctx, "tcp", address); err != nil {
		return fmt.Errorf("open the status port %s: %w", address, err)
	}
	return nil
}

// serve serves until the server is closed, which is no error. It returns at once if the port is off.
func (s *statusServer) serve() error {
	if s.listener == nil {
		return nil
	}
	if err := s.Serve(s.connections.Listener(s.listener)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the status port: %w", err)
	}
	return nil
}

// newStatus returns the server of the status port, whose mux may have further paths. ready
// returns what is missing.
func newStatus(mux *http.ServeMux, ready func() string, registry *prometheus.Registry, logger *slog.Logger) *statusServer {
	mux.HandleFunc("GET "+contract.HealthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET "+contract.ReadyPath, func(w http.ResponseWriter, _ *http.Request) {
		if missing := ready(); missing != "" {
			http.Error(w, "not ready: "+missing, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	errorLog := slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	mux.Handle("GET "+contract.MetricsPath, promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: errorLog, MaxRequestsInFlight: 4, Timeout: 5 * time.Second}))
	connections := connlimit.New(maxStatusConnections)
	return &statusServer{connections: connections, Server: http.Server{
		Handler: mux, ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 8 << 10, ErrorLog: errorLog, ConnState: connections.Changed,
	}}
}

// reportInterval is the maximum age of an answer. So many requests make the gateway compute only
// a few answers.
const reportInterval = time.Second

// reports answers with the state of the key providers. The answer has an ETag, because it seldom
// changes.
type reports struct {
	ready  func() string
	report func() *providerreport.Report

	mu   sync.Mutex
	made time.Time
	body []byte
	etag string
}

// ServeHTTP implements http.Handler.
func (s *reports) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if missing := s.ready(); missing != "" {
		http.Error(w, "not ready: "+missing, http.StatusServiceUnavailable)
		return
	}
	body, etag, err := s.latest()
	if err != nil {
		http.Error(w, "the state of the key providers cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client has gone if this fails
}

func (s *reports) latest() (body []byte, etag string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.body == nil || time.Since(s.made) > reportInterval {
		if s.body, err = json.Marshal(s.report()); err != nil {
			return nil, "", err
		}
		digest := sha256.Sum256(s.body)
		s.etag, s.made = `"`+hex.EncodeToString(digest[:16])+`"`, time.Now()
	}
	return s.body, s.etag, nil
}
