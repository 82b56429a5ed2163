// SPDX-License-Identifier: Apache-2.0

// Package kmipserver runs KMIP servers of several products for tests, with certificates of its
// own, on ports that are free.
package kmipserver

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// Product is a program that serves KMIP.
type Product struct {
	// Name is the name of the product, for errors.
	Name string
	// Run starts a server at a port of the host of the servers, "0" for one that is free. It returns
	// the process, which has a process group of its own, and the port. The folder of the servers has
	// their certificates, see [Servers.Folder]. If the server does not start, Run fails the test.
	Run func(t testing.TB, s *Servers, port string) (process *exec.Cmd, at string)
	// Count is a program of Python that prints how many keys the servers have. Its argument is the
	// folder of the servers.
	Count string
}

// Servers are KMIP servers that serve the same keys.
type Servers struct {
	// Addresses are host:port, one for each server.
	Addresses []string
	// Certificate, Key and Authority are the paths of the client's certificate and key, and of the
	// authority.
	Certificate, Key, Authority string
	// Folder has what the servers store, and their certificates: ca.crt, server.crt and server.key.
	Folder string
	// Host is the IP address that the servers listen at.
	Host string

	product Product
	running []*exec.Cmd
}

// Start starts servers at an IP address of this machine, which end with the test.
func Start(t testing.TB, product Product, host string, servers int) *Servers {
	t.Helper()
	s := &Servers{product: product, Folder: t.TempDir(), Host: host}
	s.makeCertificates(t)
	t.Cleanup(func() {
		for n := range s.running {
			s.Kill(t, n)
		}
	})
	for n := range servers {
		s.Addresses, s.running = append(s.Addresses, ""), append(s.running, nil)
		s.start(t, n, "0")
	}
	return s
}

// start starts a server and waits until it accepts connections.
func (s *Servers) start(t testing.TB, n int, port string) {
	t.Helper()
	process, at := s.product.Run(t, s, port)
	s.running[n], s.Addresses[n] = process, net.JoinHostPort(s.Host, at)
	s.awaitHandshake(t, n)
}

// awaitHandshake waits until a server answers a TLS handshake: its port may be known a moment
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
			t.Fatalf("%s does not accept connections: %v", s.product.Name, err)
		}
	}
}

func isRefused(err error) bool { return strings.Contains(err.Error(), "connection refused") }

// Kill ends a server at once. It does nothing if the server does not run.
func (s *Servers) Kill(t testing.TB, n int) {
	t.Helper()
	if process := s.running[n]; process != nil {
		s.running[n] = nil
		End(t, process)
	}
}

// End ends a process and its process group at once.
func End(t testing.TB, process *exec.Cmd) {
	t.Helper()
	if err := syscall.Kill(-process.Process.Pid, syscall.SIGKILL); err != nil {
		t.Errorf("end %s: %v", process.Path, err)
	}
	_ = process.Wait() // it was killed
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

// Client returns a client for TLS connections to the servers.
func (s *Servers) Client(t testing.TB) *tlsprovider.Client {
	t.Helper()
	client, err := tlsprovider.New(s.Secure(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Secure returns the configuration of a client.
func (s *Servers) Secure(t testing.TB) tlsprovider.Config {
	t.Helper()
	config := tlsprovider.Config{Sessions: len(s.Addresses)}
	for file, content := range map[string]*[]byte{s.Certificate: &config.Certificate, s.Key: &config.Key, s.Authority: &config.Authorities} {
		var err error
		if *content, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// TLS returns the same configuration for crypto/tls.
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

// CountKeys returns how many keys the servers have, from their database.
func (s *Servers) CountKeys(t testing.TB) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "-c", s.product.Count, s.Folder)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	count, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// File returns the path of a file in the folder of the servers.
func (s *Servers) File(name string) string { return filepath.Join(s.Folder, name) }
