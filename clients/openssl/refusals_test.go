// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// The codes of X509_V_ERR_… that the tests expect.
const (
	codeNoIssuer     = 20
	codeNotYetValid  = 9
	codeExpired      = 10
	codeRevoked      = 23
	codeNoCRL        = 3
	codeWrongPurpose = 26
	codeWrongHost    = 62
	codeWrongAddress = 64
)

func TestPeersAreRefused(t *testing.T) {
	trusted, stranger := newAuthority(t), newAuthority(t)
	serverWith := func(change func(*x509.Certificate)) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{trusted.issue(t, change).pair(t)}}
	}
	old := trusted.serverConfig(t)
	old.MaxVersion = tls.VersionTLS11
	onlyTLS12 := trusted.serverConfig(t)
	onlyTLS12.MaxVersion = tls.VersionTLS12
	weak := trusted.serverConfig(t)
	weak.MaxVersion, weak.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}
	otherProtocol := trusted.serverConfig(t)
	otherProtocol.NextProtos = []string{"other"}

	for name, test := range map[string]struct {
		server     *tls.Config
		config     openssl.Config
		serverName string
		code       int    // the code for the certificate
		reason     string // the reason of OpenSSL, if the certificate is not the cause
	}{
		"wrong host":                          {server: serverWith(nil), serverName: "example.com", code: codeWrongHost},
		"wrong host in the configuration":     {server: serverWith(nil), config: openssl.Config{ServerName: "example.com"}, code: codeWrongHost},
		"wrong address":                       {server: serverWith(nil), serverName: "127.0.0.2", code: codeWrongAddress},
		"host in the common name only":        {server: serverWith(func(c *x509.Certificate) { c.Subject.CommonName, c.DNSNames = "localhost", nil }), code: codeWrongHost},
		"host below the host of the wildcard": {server: serverWith(func(c *x509.Certificate) { c.DNSNames = []string{"*.example.com"} }), serverName: "a.b.example.com", code: codeWrongHost},
		"expired":                             {server: serverWith(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }), code: codeExpired},
		"not yet valid":                       {server: serverWith(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }), code: codeNotYetValid},
		"certificate of a client":             {server: serverWith(forClients), code: codeWrongPurpose},
		"authority that nobody knows":         {server: stranger.serverConfig(t), code: codeNoIssuer},
		"TLS 1.1":                             {server: old, reason: "protocol"},
		"TLS 1.2 where 1.3 is the least":      {server: onlyTLS12, config: openssl.Config{MinVersion: tls.VersionTLS13}, reason: "protocol"},
		"cipher suite without ECDHE":          {server: weak, reason: "handshake failure"},
		"no protocol in common":               {server: otherProtocol, config: openssl.Config{NextProtos: []string{"mine"}}},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, test.server, hold)
			test.config.RootCAs = trusted.pem
			if test.serverName == "" {
				test.serverName = "localhost"
			}
			withEachProvider(t, test.config, func(t *testing.T, p provider) {
				conn := p.dial(t, address, test.serverName)
				err := conn.HandshakeContext(t.Context())
				if err == nil {
					t.Fatal("the handshake succeeded")
				}
				if n, again := conn.Write([]byte("secret")); again == nil {
					t.Errorf("%d bytes were written after a handshake that failed", n)
				}
				if p.isOpenSSL {
					expectReason(t, err, test.code, test.reason)
				}
			})
		})
	}
}

func expectReason(t *testing.T, err error, code int, reason string) {
	t.Helper()
	var refused *openssl.CertificateError
	switch {
	case code == 0 && !strings.Contains(err.Error(), reason):
		t.Errorf("the handshake failed with %q, expected %q", err, reason)
	case code != 0 && !errors.As(err, &refused):
		t.Errorf("the handshake failed with %q, expected the certificate to be refused", err)
	case code != 0 && refused.Code != code:
		t.Errorf("the certificate was refused with %d %q, expected %d", refused.Code, refused.Reason, code)
	}
}

func TestPeersAreAccepted(t *testing.T) {
	trusted := newAuthority(t)
	wildcard := &tls.Config{Certificates: []tls.Certificate{trusted.issue(t, func(c *x509.Certificate) { c.DNSNames = []string{"*.example.com"} }).pair(t)}}
	own := trusted.issue(t, nil)
	tls12 := trusted.serverConfig(t)
	tls12.MaxVersion = tls.VersionTLS12
	for name, test := range map[string]struct {
		server     *tls.Config
		config     openssl.Config
		serverName string
		version    uint16
	}{
		"name":                       {server: trusted.serverConfig(t), serverName: "localhost", version: tls.VersionTLS13},
		"name with a dot at its end": {server: trusted.serverConfig(t), serverName: "localhost.", version: tls.VersionTLS13},
		"address":                    {server: trusted.serverConfig(t), serverName: "127.0.0.1", version: tls.VersionTLS13},
		"wildcard":                   {server: wildcard, serverName: "a.example.com", version: tls.VersionTLS13},
		"name in the configuration":  {server: trusted.serverConfig(t), config: openssl.Config{ServerName: "localhost"}, serverName: "example.com", version: tls.VersionTLS13},
		"TLS 1.2":                    {server: tls12, serverName: "localhost", version: tls.VersionTLS12},
		"TLS 1.2 at most":            {server: trusted.serverConfig(t), config: openssl.Config{MaxVersion: tls.VersionTLS12}, serverName: "localhost", version: tls.VersionTLS12},
		"certificate that is a root": {server: &tls.Config{Certificates: []tls.Certificate{own.pair(t)}}, config: openssl.Config{RootCAs: own.certificate}, serverName: "localhost", version: tls.VersionTLS13},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, test.server, echo)
			if test.config.RootCAs == nil {
				test.config.RootCAs = trusted.pem
			}
			withEachProvider(t, test.config, func(t *testing.T, p provider) {
				conn := p.dial(t, address, test.serverName)
				if err := roundTrip(conn, "hello"); err != nil {
					t.Fatal(err)
				}
				state := conn.ConnectionState()
				if state.Version != test.version || !state.HandshakeComplete || len(state.PeerCertificates) != 1 || len(state.VerifiedChains) != 1 {
					t.Errorf("the state is %+v", state)
				}
			})
		})
	}
}

func TestClientCertificatesAreSent(t *testing.T) {
	servers, clients, strangers := newAuthority(t), newAuthority(t), newAuthority(t)
	address := serve(t, requireClients(servers.serverConfig(t), clients), echo)
	known, unknown := clients.issue(t, forClients), strangers.issue(t, forClients)
	for name, test := range map[string]struct {
		client  issued
		refused bool
	}{
		"of the authority":     {client: known},
		"of another authority": {client: unknown, refused: true},
		"none at all":          {refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			config := openssl.Config{RootCAs: servers.pem, Certificate: test.client.certificate, PrivateKey: test.client.key}
			withEachProvider(t, config, func(t *testing.T, p provider) {
				// With TLS 1.3 the client learns of a refusal when it reads.
				err := roundTrip(p.dial(t, address, "localhost"), "hello")
				if (err != nil) != test.refused {
					t.Errorf("the exchange ended with %v", err)
				}
			})
		})
	}
}

func TestRevokedCertificatesAreRefused(t *testing.T) {
	authority := newAuthority(t)
	revoked, good := authority.issue(t, nil), authority.issue(t, nil)
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: revoked.number, RevocationTime: time.Now().Add(-time.Hour)}},
	}, authority.certificate, authority.key)
	if err != nil {
		t.Fatal(err)
	}
	lists := encodePEM("X509 CRL", der)
	stranger := newAuthority(t)
	for name, test := range map[string]struct {
		server issued
		roots  []byte
		code   int
	}{
		"revoked":                  {server: revoked, roots: authority.pem, code: codeRevoked},
		"not revoked":              {server: good, roots: authority.pem},
		"no list of the authority": {server: stranger.issue(t, nil), roots: stranger.pem, code: codeNoCRL},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, &tls.Config{Certificates: []tls.Certificate{test.server.pair(t)}}, echo)
			// crypto/tls does not support revocation lists.
			p := opensslProvider(t, openssl.Config{RootCAs: test.roots, CRLs: lists})
			err := p.dial(t, address, "localhost").HandshakeContext(t.Context())
			if test.code == 0 && err != nil {
				t.Fatal(err)
			}
			if test.code != 0 {
				expectReason(t, err, test.code, "")
			}
		})
	}
}

func TestTheServerLearnsTheNameAndTheProtocols(t *testing.T) {
	authority := newAuthority(t)
	hellos := make(chan *tls.ClientHelloInfo, 1)
	server := authority.serverConfig(t)
	server.NextProtos = []string{"b"}
	server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		hellos <- hello
		return nil, nil
	}
	address := serve(t, server, hold)
	for serverName, sent := range map[string]string{"localhost": "localhost", "127.0.0.1": ""} {
		withEachProvider(t, openssl.Config{RootCAs: authority.pem, NextProtos: []string{"a", "b"}}, func(t *testing.T, p provider) {
			conn := p.dial(t, address, serverName)
			if err := conn.HandshakeContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			hello := <-hellos
			if hello.ServerName != sent || !slices.Equal(hello.SupportedProtos, []string{"a", "b"}) {
				t.Errorf("the server got the name %q and the protocols %q", hello.ServerName, hello.SupportedProtos)
			}
			if got := conn.ConnectionState().NegotiatedProtocol; got != "b" {
				t.Errorf("the protocol is %q", got)
			}
		})
	}
}

var _ net.Conn = (*openssl.Conn)(nil)
