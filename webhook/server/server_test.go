// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// served is a server that runs, and the authority that its clients trust.
type served struct {
	address string
	trusted *x509.CertPool
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// serve runs a server until the test ends.
func serve(t *testing.T, handler http.HandlerFunc) served {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"webhook"}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	server := New(Options{TLS: func(config *tls.Config) {
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
		}
	}})
	server.Register("/", handler)
	listening, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.serve(ctx, listening) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := new(net.Dialer).Dial("tcp", listening.Addr().String()); err == nil {
			t.Error("the port is open after the end")
		}
	})
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return served{listening.Addr().String(), pool}
}

func hello(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, "hello")
}

// from dials from its own loopback address, like a pod, which has its own address.
func (s served) from(t *testing.T, address string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 10 * time.Second}
	return dialer.DialContext(t.Context(), "tcp", s.address)
}

// client makes requests from an address, each over a connection of its own.
func (s served) client(t *testing.T, address string) *http.Client {
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return s.from(t, address) },
		TLSClientConfig:   &tls.Config{RootCAs: s.trusted, ServerName: "webhook", MinVersion: tls.VersionTLS13},
		DisableKeepAlives: true,
		ForceAttemptHTTP2: true,
	}
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// ask makes one request.
func (s served) ask(t *testing.T, client *http.Client, body string) error {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.address+"/", strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || string(answer) != "hello" || response.ProtoMajor != 1 {
		return fmt.Errorf("answered %s %s %q", response.Proto, response.Status, answer)
	}
	return nil
}

func TestAClientIsAnsweredByHTTP1(t *testing.T) {
	s := serve(t, hello)
	if err := s.ask(t, s.client(t, "127.0.0.1"), "{}"); err != nil {
		t.Error(err)
	}
}

func TestAClientHasHalfOfTheConnectionsAndGetsThemBack(t *testing.T) {
	s := serve(t, hello)
	var open []net.Conn
	for range maxConnections/2 + 50 {
		connection, err := s.from(t, "127.0.1.1")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, connection)
	}
	var closed atomic.Int64
	var reading sync.WaitGroup
	for _, connection := range open {
		reading.Go(func() {
			if _, err := connection.Read(make([]byte, 1)); err != nil && !isTimeout(err) {
				closed.Add(1)
			}
		})
	}
	for deadline := time.Now().Add(30 * time.Second); closed.Load() < 50 && time.Now().Before(deadline); {
		<-time.After(10 * time.Millisecond)
	}
	for _, connection := range open {
		if err := connection.SetReadDeadline(time.Now()); err != nil {
			t.Error(err)
		}
	}
	reading.Wait()
	if closed.Load() != 50 {
		t.Errorf("%d connections were closed, expected 50", closed.Load())
	}
	for _, connection := range open {
		_ = connection.Close()
	}
	client := s.client(t, "127.0.1.1")
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if err = s.ask(t, client, "{}"); err == nil {
			return
		}
	}
	t.Errorf("nothing was given back: %v", err)
}

func TestAConnectionServesARequestThatComesLate(t *testing.T) {
	t.Parallel()
	s := serve(t, hello)
	connection, err := s.from(t, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	secured := tls.Client(connection, &tls.Config{RootCAs: s.trusted, ServerName: "webhook", MinVersion: tls.VersionTLS13})
	if err := secured.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-time.After(headerTimeout + time.Second) // an API server may keep the connection for later
	if _, err := io.WriteString(secured, "POST / HTTP/1.1\r\nHost: webhook\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(secured), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("found %s, expected 200", response.Status)
	}
	_ = secured.Close()
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestAConnectionThatDoesNothingIsClosed(t *testing.T) {
	for what, begin := range map[string]string{"begins nothing": "", "begins a handshake": "\x16\x03\x01"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := serve(t, hello)
			connection, err := s.from(t, "127.0.0.1")
			if err == nil {
				_, err = io.WriteString(connection, begin)
			}
			if err == nil {
				err = connection.SetReadDeadline(time.Now().Add(30 * time.Second))
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := connection.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Errorf("after thirty seconds it is there: %v", err)
			}
			_ = connection.Close()
		})
	}
}

func TestHeadersThatAreTooLargeAreRefused(t *testing.T) {
	s := serve(t, hello)
	client := s.client(t, "127.0.0.1")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.address+"/", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Large", strings.Repeat("x", 32<<10))
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("answered %s, expected 431", response.Status)
	}
}

func TestTheServerIsReadyOnceItListens(t *testing.T) {
	server := New(Options{})
	if err := server.StartedChecker()(nil); err == nil {
		t.Error("it is ready before it listens")
	}
}
