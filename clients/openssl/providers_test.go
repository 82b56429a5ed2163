// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/credentials"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
	"github.com/crypto-broker/crypto-broker-operator/clients/openssl/opensslgrpc"
)

// TestMain fails if the tests leave goroutines or objects of OpenSSL behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for deadline := time.Now().Add(patience); openssl.Live() != [3]int64{}; runtime.Gosched() {
			if time.Now().After(deadline) {
				fmt.Fprintf(os.Stderr, "found %v contexts, connections and sessions of OpenSSL after the tests, expected none\n", openssl.Live())
				code = max(code, 1)
				break
			}
		}
		os.Exit(code)
	}))
}

// A test that waits longer than this has found something that hangs.
const patience = time.Minute

// tlsConn is what the connections of both providers have.
type tlsConn interface {
	net.Conn
	HandshakeContext(context.Context) error
	CloseWrite() error
	ConnectionState() tls.ConnectionState
}

// provider is an implementation of TLS with one configuration.
type provider struct {
	name      string
	connect   func(raw net.Conn, serverName string, protocols ...string) (tlsConn, error)
	http1     func() *http.Transport
	http2     func() *http.Transport
	forGRPC   func() credentials.TransportCredentials
	isOpenSSL bool
}

// withEachProvider runs a test with both implementations. The configuration is the same for both.
func withEachProvider(t *testing.T, config openssl.Config, test func(*testing.T, provider)) {
	t.Helper()
	t.Run("go", func(t *testing.T) { test(t, goProvider(t, config)) })
	t.Run("openssl", func(t *testing.T) { test(t, opensslProvider(t, config)) })
}

// The library of the tests, if it is not the library of the system: "make test-openssl LIBSSL=/path/to/libssl.so.1.1".
var testLibrary = os.Getenv("LIBSSL")

func opensslProvider(t testing.TB, config openssl.Config) provider {
	t.Helper()
	config.Library = testLibrary
	client, err := openssl.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return provider{
		name: "openssl", isOpenSSL: true,
		connect: func(raw net.Conn, serverName string, protocols ...string) (tlsConn, error) {
			return client.NewConn(raw, serverName, protocols...)
		},
		http1:   client.Transport,
		http2:   client.HTTP2Transport,
		forGRPC: func() credentials.TransportCredentials { return opensslgrpc.New(client) },
	}
}

func goProvider(t testing.TB, config openssl.Config) provider {
	t.Helper()
	settings := &tls.Config{
		RootCAs: x509.NewCertPool(), ServerName: config.ServerName, NextProtos: config.NextProtos,
		MinVersion: config.MinVersion, MaxVersion: config.MaxVersion, CipherSuites: config.CipherSuites,
	}
	settings.RootCAs.AppendCertsFromPEM(config.RootCAs)
	if config.SessionCacheSize > 0 {
		settings.ClientSessionCache = tls.NewLRUClientSessionCache(config.SessionCacheSize)
	}
	if len(config.Certificate) > 0 {
		certificate, err := tls.X509KeyPair(config.Certificate, config.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		settings.Certificates = []tls.Certificate{certificate}
	}
	transport := func(set func(*http.Protocols, bool)) *http.Transport {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.Proxy, transport.TLSClientConfig = nil, settings.Clone()
		transport.Protocols = new(http.Protocols)
		set(transport.Protocols, true)
		return transport
	}
	return provider{
		name: "go",
		connect: func(raw net.Conn, serverName string, protocols ...string) (tlsConn, error) {
			clone := settings.Clone()
			if clone.ServerName == "" {
				clone.ServerName = serverName
			}
			if len(protocols) > 0 {
				clone.NextProtos = protocols
			}
			return tls.Client(raw, clone), nil
		},
		http1:   func() *http.Transport { return transport((*http.Protocols).SetHTTP1) },
		http2:   func() *http.Transport { return transport((*http.Protocols).SetHTTP2) },
		forGRPC: func() credentials.TransportCredentials { return credentials.NewTLS(settings) },
	}
}

// dial connects to an address without a handshake.
func (p provider) dial(t testing.TB, address, serverName string, protocols ...string) tlsConn {
	t.Helper()
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := p.connect(raw, serverName, protocols...)
	if err != nil {
		_ = raw.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	// Without this limit, a test that hangs would fail without a message.
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}
