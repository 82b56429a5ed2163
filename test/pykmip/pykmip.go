// SPDX-License-Identifier: Apache-2.0

// Package pykmip starts KMIP servers for tests: PyKMIP, with certificates of its own, on
// ports that are free.
package pykmip

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/hex"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// version is the version of PyKMIP, a package of Python.
const version = "0.11.0"

//go:embed serve.py
var script string

// Servers are KMIP servers that serve the same keys.
type Servers struct {
	// Addresses are host:port, one for each server.
	Addresses []string
	// Files are the paths of the client's certificate and key, and of the authority.
	Certificate, Key, Authority string

	packages, folder, host string
	running                []*exec.Cmd
}

// Start starts servers on the loopback interface, which end with the test. The first use of a
// cache installs PyKMIP with pip.
func Start(t testing.TB, servers int) *Servers {
	t.Helper()
	return StartAt(t, "127.0.0.1", servers)
}

// StartAt is Start for servers that listen at another IP address of this machine.
func StartAt(t testing.TB, host string, servers int) *Servers {
	t.Helper()
	s := &Servers{packages: install(t), folder: t.TempDir(), host: host}
	s.makeCertificates(t)
	if err := os.WriteFile(filepath.Join(s.folder, "serve.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for n := range servers {
		s.Addresses = append(s.Addresses, "")
		s.running = append(s.running, nil)
		s.start(t, n, "0")
	}
	t.Cleanup(func() {
		for n := range s.running {
			s.Kill(t, n)
		}
	})
	return s
}

// install returns the folder with PyKMIP and what it needs.
func install(t testing.TB) string {
	t.Helper()
	folder, err := environment.PythonPackage{Name: "pykmip", Version: version}.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// start starts a server and waits until it accepts connections.
func (s *Servers) start(t testing.TB, n int, port string) {
	t.Helper()
	cmd := exec.Command("python3", filepath.Join(s.folder, "serve.py"), s.host, port, s.folder, filepath.Join(s.folder, "keys.db"))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+s.packages, "PYTHONWARNINGS=ignore")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // PyKMIP has several processes
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.running[n] = cmd
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		s.Kill(t, n)
		log, _ := os.ReadFile(filepath.Join(s.folder, "server.log")) // it may not exist
		t.Fatalf("PyKMIP did not start: %v\n%s\n%s", err, stderr.String(), log)
	}
	s.Addresses[n] = net.JoinHostPort(s.host, strings.TrimSpace(line))
	s.awaitHandshake(t, n)
}

// awaitHandshake waits until a server answers a TLS handshake: it prints its port a moment
// before it listens.
func (s *Servers) awaitHandshake(t testing.TB, n int) {
	t.Helper()
	dialer := tls.Dialer{Config: s.TLS(t)}
	for {
		conn, err := dialer.DialContext(t.Context(), "tcp", s.Addresses[n])
		if err == nil {
			_ = conn.Close()
			return
		}
		if t.Context().Err() != nil || !isRefused(err) {
			t.Fatalf("PyKMIP does not accept connections: %v", err)
		}
	}
}

func isRefused(err error) bool { return strings.Contains(err.Error(), "connection refused") }

// Kill ends a server at once. It does nothing if the server does not run.
func (s *Servers) Kill(t testing.TB, n int) {
	t.Helper()
	cmd := s.running[n]
	if cmd == nil {
		return
	}
	s.running[n] = nil
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Errorf("end PyKMIP: %v", err)
	}
	_ = cmd.Wait() // it was killed
}

// Restart starts a server that was killed, with the address that it had.
func (s *Servers) Restart(t testing.TB, n int) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Addresses[n])
	if err != nil {
		t.Fatal(err)
	}
	s.start(t, n, port)
}

// TLS returns the configuration of a client.
func (s *Servers) TLS(t testing.TB) *tls.Config {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(s.Authority)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// Unwrap unwraps a key by AES key wrap (RFC 3394) with an implementation of somebody else,
// the Python package cryptography.
func (s *Servers) Unwrap(t testing.TB, wrapping, wrapped []byte) []byte {
	t.Helper()
	return s.python(t, "import sys; from cryptography.hazmat.primitives.keywrap import aes_key_unwrap; "+
		"sys.stdout.buffer.write(aes_key_unwrap(bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2])))",
		hex.EncodeToString(wrapping), hex.EncodeToString(wrapped))
}

// CountKeys returns how many keys the servers have, from their database.
func (s *Servers) CountKeys(t testing.TB) int {
	t.Helper()
	out := s.python(t, "import sqlite3, sys; "+
		"print(sqlite3.connect(sys.argv[1]).execute('SELECT COUNT(*) FROM managed_objects').fetchone()[0])", filepath.Join(s.folder, "keys.db"))
	count, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// python runs a program and returns what it prints.
func (s *Servers) python(t testing.TB, program string, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{"-c", program}, arguments...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+s.packages)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return out
}
