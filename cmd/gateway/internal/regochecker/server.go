// SPDX-License-Identifier: Apache-2.0

package regochecker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"time"

	"golang.org/x/net/netutil"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regocheck"
)

const (
	// maxTime is how long a process may compile. It is shorter than the limit of a key access
	// service, so a module that is admitted compiles there, too.
	maxTime = 2500 * time.Millisecond
	// maxConnections is the maximum number of connections at a time. One module is compiled at a
	// time.
	maxConnections = 16
)

// Server checks modules.
type Server struct {
	// Command is the command line of a process that calls [CompileOne] with its standard input and output.
	Command []string
	Logger  *slog.Logger

	turn chan struct{}
}

// Serve answers until ctx ends, which is no error.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	s.turn = make(chan struct{}, 1)
	paths := http.NewServeMux()
	paths.Handle("POST "+regocheck.Path, s)
	server := &http.Server{
		Handler: paths, ReadHeaderTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 8 << 10,
		ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelWarn),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // the client will ask again
	defer stop()
	if err := server.Serve(netutil.LimitListener(listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP implements http.Handler. It answers with the problems of the module in the body.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	module, err := io.ReadAll(http.MaxBytesReader(w, r.Body, regocheck.MaxModule))
	if err != nil {
		http.Error(w, fmt.Sprintf("the module cannot be read, or has more than %d bytes", regocheck.MaxModule), http.StatusBadRequest)
		return
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-r.Context().Done():
		return
	}
	answer, err := s.compile(r.Context(), module)
	if err != nil {
		s.Logger.ErrorContext(r.Context(), "a module could not be checked", "error", err)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client has gone if this fails
}

// compile compiles a module in a new process. It ends the process when the client has gone, or
// when the time is over.
func (s *Server) compile(ctx context.Context, module []byte) (*regocheck.Answer, error) {
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	process := exec.CommandContext(limited, s.Command[0], s.Command[1:]...)
	process.Env = []string{} // the process needs no variables of the environment
	process.Stdin = bytes.NewReader(module)
	var output bytes.Buffer
	process.Stdout = &output
	err := process.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return &regocheck.Answer{Problems: []string{fmt.Sprintf("line 1, column 1 of the module: it takes longer than %s to compile; nest terms less deeply", maxTime)}}, nil
	case errors.As(err, &ended) && ended.ExitCode() == exitMemory:
		return &regocheck.Answer{Problems: []string{fmt.Sprintf("line 1, column 1 of the module: OPA cannot compile it with %d MiB of memory; nest terms less deeply", maxMemory>>20)}}, nil
	case err != nil:
		return nil, fmt.Errorf("run a process that compiles: %w", err)
	}
	answer := &regocheck.Answer{}
	if err := json.Unmarshal(output.Bytes(), answer); err != nil {
		return nil, fmt.Errorf("a process that compiles has written no answer: %w", err)
	}
	return answer, nil
}
