// SPDX-License-Identifier: Apache-2.0

// Package redisserver starts Redis servers for tests, from Debian's packages. No service of the system
// starts.
package redisserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// packages are Debian's packages of Redis: the programs, and the libraries that a small system lacks.
var packages = []string{"redis-tools", "libatomic1", "libjemalloc2", "liblzf1", "libssl3"}

// Port is the port of all servers. Each has an address of its own, so that it gets the same port when it
// starts again.
const Port = "6379"

// Server is a Redis server.
type Server struct {
	// Host is the IP address of the server, and Address the same with its port.
	Host, Address string
	// Log is the path of the log.
	Log string

	programs, libraries string
	arguments           []string
	running             *exec.Cmd
}

// Start starts a server without a disk, which ends with the test. The settings come after the settings of this package, as
// on the command line of Redis: "--maxmemory", "10mb".
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := New(t)
	s.Run(t, settings...)
	return s
}

// StartAt is Start at an address of this machine.
func StartAt(t testing.TB, host string, settings ...string) *Server {
	t.Helper()
	s := find(t)
	s.Host, s.Address = host, net.JoinHostPort(host, Port)
	s.Run(t, settings...)
	return s
}

// New returns a server that does not run yet.
func New(t testing.TB) *Server {
	t.Helper()
	s := find(t)
	s.takeAddress(t)
	return s
}

// find returns a server without an address, which ends with the test.
func find(t testing.TB) *Server {
	t.Helper()
	s := &Server{Log: filepath.Join(t.TempDir(), "log")}
	repository, err := environment.Repository()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		t.Fatal(err)
	}
	if s.programs, s.libraries, err = Find(context.Background(), os.Stderr, cache); err != nil {
		t.Fatal("Redis cannot be used: ", err)
	}
	t.Cleanup(func() { s.Kill(t) })
	return s
}

// Find downloads Debian's packages once. It returns the folder of the programs, and the value of
// LD_LIBRARY_PATH that they need.
func Find(ctx context.Context, progress io.Writer, cache string) (programs, libraries string, err error) {
	var folders []string
	for _, name := range packages {
		folder, err := environment.DebianPackage(ctx, progress, cache, name)
		if err != nil {
			return "", "", err
		}
		found, err := filepath.Glob(filepath.Join(folder, "usr", "lib", "*-linux-gnu"))
		if err != nil {
			return "", "", err
		}
		folders = append(folders, found...)
		if name == packages[0] {
			programs = filepath.Join(folder, "usr", "bin")
		}
	}
	return programs, strings.Join(folders, ":"), nil
}

// takeAddress finds an address of this machine where nobody listens at the port.
func (s *Server) takeAddress(t testing.TB) {
	t.Helper()
	for range 100 {
		var random [3]byte
		_, _ = rand.Read(random[:]) // it never returns an error
		s.Host = fmt.Sprintf("127.%d.%d.%d", 64+random[0]%128, random[1], 1+random[2]%250)
		s.Address = net.JoinHostPort(s.Host, Port)
		if listener, err := net.Listen("tcp", s.Address); err == nil {
			_ = listener.Close() // nobody has connected
			return
		}
	}
	t.Fatal("found no free address for Redis")
}

// Run starts the server with settings.
func (s *Server) Run(t testing.TB, settings ...string) {
	t.Helper()
	s.RunAs(t, append([]string{"--save", "", "--appendonly", "no"}, settings...)...)
}

// RunAs starts the server with these settings alone, after its address and its folder.
func (s *Server) RunAs(t testing.TB, settings ...string) {
	t.Helper()
	s.arguments = append([]string{"--bind", s.Host, "--port", Port, "--dir", filepath.Dir(s.Log), "--daemonize", "no"}, settings...)
	s.Again(t)
}

// RunSentinel starts a Sentinel with lines of its configuration, such as "sentinel monitor NAME HOST PORT QUORUM".
func (s *Server) RunSentinel(t testing.TB, lines ...string) {
	t.Helper()
	folder := filepath.Dir(s.Log)
	lines = append([]string{"bind " + s.Host, "port " + Port, "dir " + folder, "sentinel announce-ip " + s.Host}, lines...)
	configuration := filepath.Join(folder, "sentinel.conf") // which a Sentinel writes to
	if err := os.WriteFile(configuration, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.arguments = []string{configuration, "--sentinel"}
	s.Again(t)
}

// Again starts the server with its last settings, after Kill.
func (s *Server) Again(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the server has its own
	// The program is a link with several names, and looks at the name that it was called by.
	s.running = &exec.Cmd{
		Path: filepath.Join(s.programs, "redis-check-rdb"), Args: append([]string{"redis-server"}, s.arguments...),
		Env: append(os.Environ(), "LD_LIBRARY_PATH="+s.libraries), Stdout: log, Stderr: log,
	}
	if err := s.running.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func(cmd *exec.Cmd) {
		defer close(ended)
		_, _ = cmd.Process.Wait()
	}(s.running)
	for {
		if conn, err := net.Dial("tcp", s.Address); err == nil {
			_ = conn.Close() // nothing was sent
			return
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(s.Log)
			t.Fatalf("Redis did not start:\n%s", text)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Kill ends the server at once.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if s.running == nil {
		return
	}
	s.signal(t, syscall.SIGKILL)
	for s.running.Process.Signal(syscall.Signal(0)) == nil { // until it was waited for
		<-time.After(time.Millisecond)
	}
	s.running = nil
}

// Pause makes the server answer nothing until Continue. The system still takes connections for it.
func (s *Server) Pause(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Continue ends Pause.
func (s *Server) Continue(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := s.running.Process.Signal(signal); err != nil && err != os.ErrProcessDone { //nolint:errorlint // it is this error
		t.Fatal(err)
	}
}

// Ask runs a command with redis-cli, and returns its answer.
func (s *Server) Ask(t testing.TB, command ...string) string {
	t.Helper()
	answer, err := s.TryToAsk(command...)
	if err != nil {
		t.Fatalf("redis-cli %q: %v\n%s", command, err, answer)
	}
	return answer
}

// TryToAsk is Ask with the error.
func (s *Server) TryToAsk(command ...string) (string, error) {
	cmd := exec.Command(filepath.Join(s.programs, "redis-cli"), append([]string{"-e", "-h", s.Host, "-p", Port}, command...)...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+s.libraries)
	answer, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(answer)), err
}
