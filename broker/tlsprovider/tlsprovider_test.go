// SPDX-License-Identifier: Apache-2.0

package tlsprovider_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

// The tests of this file run with crypto/tls, and with OpenSSL by "make test-openssl".

// server is a server that demands a client certificate. Both sides use the same certificate.
func server(t *testing.T) (at *httptest.Server, config tlsprovider.Config) {
	t.Helper()
	at = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello over "+r.Proto)
	}))
	at.Config.ErrorLog = nil
	plain := httptest.NewTLSServer(nil) // only its certificate is used
	defer plain.Close()
	certificate, pool := plain.TLS.Certificates[0], x509.NewCertPool()
	pool.AddCert(plain.Certificate())
	at.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	at.StartTLS()
	t.Cleanup(at.Close)
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	config.Authorities = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: plain.Certificate().Raw})
	config.Certificate, config.Key = config.Authorities, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	return at, config
}

func clientOf(t *testing.T, config tlsprovider.Config) *tlsprovider.Client {
	t.Helper()
	client, err := tlsprovider.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAConnectionIsTheOneOfTheProviderThatIsUsed(t *testing.T) {
	at, config := server(t)
	conn, err := clientOf(t, config).DialContext(t.Context(), "tcp", at.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, native := conn.(*tls.Conn)
	if want := tlsprovider.Current().Provider == tlsprovider.Go; native != want {
		t.Errorf("found a connection of the type %T with the provider %s", conn, tlsprovider.Current().Provider)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if reply, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(reply), "hello over HTTP/1.0") {
		t.Errorf("got %q, %v", reply, err)
	}
}

func TestATransportSpeaksToAServerWithAndWithoutTLS(t *testing.T) {
	at, config := server(t)
	plain := httptest.NewServer(at.Config.Handler)
	defer plain.Close()
	transport := &http.Transport{}
	if err := clientOf(t, config).Secure(transport, at.URL); err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	for _, address := range []string{at.URL, plain.URL} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if closing := response.Body.Close(); err != nil || closing != nil || string(text) != "hello over HTTP/1.1" {
			t.Errorf("%s: got %q, %v", address, text, err)
		}
	}
}

func TestWhatIsRefusedIsToldFromWhatIsAway(t *testing.T) {
	at, config := server(t)
	address := at.Listener.Addr().String()
	for sentence, c := range map[string]struct {
		change func(*tlsprovider.Config)
		want   bool
	}{
		"the authority is another one":  {func(c *tlsprovider.Config) { c.Authorities = nil }, true},
		"the name is another one":       {func(c *tlsprovider.Config) { c.ServerName = "other.test" }, true},
		"the client has no certificate": {func(c *tlsprovider.Config) { c.Certificate, c.Key = nil, nil }, true},
		"all is well":                   {func(*tlsprovider.Config) {}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			changed := config
			c.change(&changed)
			conn, err := clientOf(t, changed).DialContext(t.Context(), "tcp", address)
			if err == nil {
				// With TLS 1.3, the server refuses after the handshake.
				defer func() { _ = conn.Close() }()
				if _, err = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err == nil {
					_, err = io.ReadAll(conn)
				}
			}
			if tlsprovider.Refused(err) != c.want || (err != nil) != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := clientOf(t, config).DialContext(ended, "tcp", address); !errors.Is(err, context.Canceled) || tlsprovider.Refused(err) {
		t.Errorf("with a context that has ended: got %v", err)
	}
}

func TestAHandshakeEndsWithItsContext(t *testing.T) {
	_, config := server(t)
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = theirs.Read(make([]byte, 1)) // the handshake has begun
		cancel()
	}()
	if _, err := clientOf(t, config).Handshake(ctx, ours, "example.com"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := ours.Write([]byte{1}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

func TestAuthoritiesAreTheCertificatesOfAFileThatCanBeRead(t *testing.T) {
	at, config := server(t)
	wanted := config.Authorities
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")})
	config.Authorities = append(append([]byte("a comment\n"), broken...), wanted...)
	conn, err := clientOf(t, config).DialContext(t.Context(), "tcp", at.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for sentence, text := range map[string][]byte{"text that is no PEM": []byte("x"), "no certificate that can be read": broken, "a key": config.Key} {
		if _, err := tlsprovider.New(tlsprovider.Config{Authorities: text}); !errors.Is(err, tlsprovider.ErrAuthorities) {
			t.Errorf("%s: got %v", sentence, err)
		}
	}
}

func TestFilesOfWindowsAreReadWithTheirByteOrderMark(t *testing.T) {
	at, config := server(t)
	for _, text := range []*[]byte{&config.Authorities, &config.Certificate, &config.Key} {
		*text = append([]byte("\ufeff"), *text...)
	}
	conn, err := clientOf(t, config).DialContext(t.Context(), "tcp", at.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestAKeyThatDoesNotBelongToTheCertificateIsAnErrorWithoutTheKey(t *testing.T) {
	_, config := server(t)
	for sentence, change := range map[string]func(*tlsprovider.Config){
		"no key":            func(c *tlsprovider.Config) { c.Key = nil },
		"no certificate":    func(c *tlsprovider.Config) { c.Certificate = nil },
		"a key that is cut": func(c *tlsprovider.Config) { c.Key = c.Key[:len(c.Key)/2] },
	} {
		changed := config
		change(&changed)
		if _, err := tlsprovider.New(changed); err == nil || strings.Contains(err.Error(), "-----") || errors.Is(err, tlsprovider.ErrAuthorities) {
			t.Errorf("%s: got %v", sentence, err)
		}
	}
}

func TestAProviderThatTheProgramDoesNotHaveIsRefused(t *testing.T) {
	used := tlsprovider.Current()
	for name, want := range map[string]string{"": `the TLS provider is "", expected one of go`, "gnutls": `the TLS provider is "gnutls", expected one of go`} {
		if err := tlsprovider.Use(name, false); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if tlsprovider.Current() != used {
		t.Error("a provider that is refused has replaced the one that is used")
	}
}
