// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// serveHTTP serves HTTP/1.1 and HTTP/2 with a certificate of the authority.
func serveHTTP(t testing.TB, config *tls.Config, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS, server.EnableHTTP2 = config, true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func httpClient(t testing.TB, transport *http.Transport) *http.Client {
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func TestHTTPRequestsSendAndGetBodiesOfAnySize(t *testing.T) {
	authority := newAuthority(t)
	server := serveHTTP(t, authority.serverConfig(t), func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Protocol", r.Proto)
		_, _ = w.Write(body)
	})
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		for protocol, transport := range map[string]*http.Transport{"HTTP/1.1": p.http1(), "HTTP/2.0": p.http2()} {
			t.Run(protocol, func(t *testing.T) {
				client := httpClient(t, transport)
				for _, size := range []int{0, 1, 16383, 16384, 16385, 1 << 20} {
					sent := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
					response, err := client.Post(server.URL, "", bytes.NewReader(sent))
					if err != nil {
						t.Fatal(err)
					}
					got, err := io.ReadAll(response.Body)
					response.Body.Close()
					if err != nil || !bytes.Equal(got, sent) {
						t.Errorf("sent %d bytes, got %d: %v", len(sent), len(got), err)
					}
					if got := response.Header.Get("Protocol"); got != protocol {
						t.Errorf("the server saw %s", got)
					}
				}
			})
		}
	})
}

func TestRequestsSucceedAfterFailedConnections(t *testing.T) {
	authority, stranger := newAuthority(t), newAuthority(t)
	good := serveHTTP(t, authority.serverConfig(t), func(http.ResponseWriter, *http.Request) {})
	// A listener that was closed leaves a port that refuses connections.
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	bad := []string{
		closed.Addr().String(),
		serve(t, stranger.serverConfig(t), hold),
		serve(t, authority.serverConfig(t), func(conn *tls.Conn) { _ = conn.NetConn().Close() }),
	}
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		client := httpClient(t, p.http1())
		for range 3 {
			for _, address := range bad {
				response, err := client.Get("https://" + address)
				if err == nil {
					response.Body.Close()
					t.Errorf("a request to %s succeeded", address)
				}
			}
			response, err := client.Get(good.URL)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
		}
	})
}

func TestARequestEndsWithItsContext(t *testing.T) {
	authority := newAuthority(t)
	arrived := make(chan struct{}, 2)
	server := serveHTTP(t, authority.serverConfig(t), func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
		// A reply at this moment could be faster than the client's end of the connection.
		panic(http.ErrAbortHandler)
	})
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		for protocol, transport := range map[string]*http.Transport{"HTTP/1.1": p.http1(), "HTTP/2.0": p.http2()} {
			t.Run(protocol, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					<-arrived
					cancel()
				}()
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := httpClient(t, transport).Do(request)
				if err == nil {
					response.Body.Close()
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the request ended with %v", err)
				}
			})
		}
	})
}

func TestAnHTTP2TransportRefusesAServerWithoutHTTP2(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), hold)
	p := opensslProvider(t, openssl.Config{RootCAs: authority.pem})
	response, err := httpClient(t, p.http2()).Get("https://" + address)
	if err == nil {
		response.Body.Close()
		t.Fatal("the request succeeded")
	}
}

func TestARequestThroughAProxyIsNotMadeWithTheOtherImplementation(t *testing.T) {
	authority := newAuthority(t)
	server := serveHTTP(t, authority.serverConfig(t), func(http.ResponseWriter, *http.Request) {})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			return
		}
		defer func() { _ = to.Close() }()
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = from.Close() }()
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
	}))
	t.Cleanup(proxy.Close)
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	// The transport also has authorities that crypto/tls would accept.
	pool := x509.NewCertPool()
	pool.AddCert(authority.certificate)
	p := opensslProvider(t, openssl.Config{RootCAs: authority.pem})
	for protocol, transport := range map[string]*http.Transport{"HTTP/1.1": p.http1(), "HTTP/2.0": p.http2()} {
		t.Run(protocol, func(t *testing.T) {
			transport.Proxy, transport.TLSClientConfig.RootCAs = http.ProxyURL(address), pool
			response, err := httpClient(t, transport).Get(server.URL)
			if err == nil {
				_ = response.Body.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "the transport has a proxy") {
				t.Errorf("the request ended with %v", err)
			}
		})
	}
}

func TestABodyThatIsCutIsAnError(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), func(conn *tls.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		// This body ends when the connection ends.
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
		_ = conn.NetConn().Close()
	})
	withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
		response, err := httpClient(t, p.http1()).Get("https://" + address)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		got, err := io.ReadAll(response.Body)
		if string(got) != "hello" {
			t.Errorf("the body is %q", got)
		}
		// crypto/tls takes the end of a record for the end of the data.
		if cut := errors.Is(err, openssl.ErrTruncated); cut != p.isOpenSSL {
			t.Errorf("the body ended with %v", err)
		}
	})
}
