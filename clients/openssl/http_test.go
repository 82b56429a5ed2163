// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
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
