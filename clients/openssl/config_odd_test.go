// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

func TestConfigurationsOfCryptoTLSAreRefused(t *testing.T) {
	authority, stranger := newAuthority(t), newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(authority.certificate)
	pair := authority.issue(t, forClients).pair(t)
	device, otherKey, otherLeaf := pair, pair, pair
	device.PrivateKey = struct{}{}
	otherKey.PrivateKey = stranger.issue(t, forClients).pair(t).PrivateKey
	otherLeaf.Leaf = stranger.certificate
	for name, test := range map[string]struct {
		config  *tls.Config
		roots   []byte
		mention string
	}{
		"authorities without their PEM":           {config: &tls.Config{RootCAs: pool}, mention: "roots"},
		"PEM without authorities":                 {config: &tls.Config{}, roots: authority.pem, mention: "RootCAs"},
		"no authorities, which trusts nobody":     {config: &tls.Config{RootCAs: x509.NewCertPool()}, mention: "RootCAs"},
		"PEM of other authorities":                {config: &tls.Config{RootCAs: pool}, roots: stranger.pem, mention: "RootCAs"},
		"PEM of more authorities":                 {config: &tls.Config{RootCAs: pool}, roots: slices.Concat(authority.pem, stranger.pem), mention: "RootCAs"},
		"two certificates":                        {config: &tls.Config{Certificates: []tls.Certificate{pair, pair}}, mention: "Certificates"},
		"a certificate that is empty":             {config: &tls.Config{Certificates: []tls.Certificate{{}}}, mention: "Certificates"},
		"a key that cannot be taken over":         {config: &tls.Config{Certificates: []tls.Certificate{device}}, mention: "private key"},
		"a key of another certificate":            {config: &tls.Config{Certificates: []tls.Certificate{otherKey}}, mention: "PrivateKey"},
		"a leaf of another certificate":           {config: &tls.Config{Certificates: []tls.Certificate{otherLeaf}}, mention: "Leaf"},
		"no suite of TLS 1.2":                     {config: &tls.Config{CipherSuites: []uint16{}}, mention: "CipherSuites"},
		"a suite of TLS 1.3, which is ignored":    {config: &tls.Config{CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256}}, mention: "CipherSuites"},
		"an old version":                          {config: &tls.Config{MinVersion: tls.VersionTLS10}, mention: "MinVersion"}, //nolint:gosec // it is refused
		"a version that does not exist":           {config: &tls.Config{MaxVersion: 0x0305}, mention: "MaxVersion"},           //nolint:gosec // it is refused
		"versions in the wrong order":             {config: &tls.Config{MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS12}, mention: "MinVersion"},
		"a key agreement that does not exist":     {config: &tls.Config{CurvePreferences: []tls.CurveID{1}}, mention: "CurvePreferences"},
		"a protocol without a name":               {config: &tls.Config{NextProtos: []string{"h2", ""}}, mention: "NextProtos"},
		"a protocol of 256 bytes":                 {config: &tls.Config{NextProtos: []string{strings.Repeat("a", 256)}}, mention: "NextProtos"},
		"a name of all hosts below":               {config: &tls.Config{ServerName: ".example.com"}, mention: "ServerName"},
		"a certificate that nobody is asked for":  {config: &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { return nil }}, mention: "VerifyPeerCertificate"}, //nolint:gosec // it is refused
		"a callback that returns no certificates": {config: &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, nil }}, mention: "GetClientCertificate"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := openssl.FromTLS(test.config, test.roots)
			if err == nil {
				var client *openssl.Client
				config.Library = testLibrary
				if client, err = openssl.New(config); err == nil {
					_ = client.Close()
				}
			}
			if err == nil || !strings.Contains(err.Error(), test.mention) {
				t.Errorf("found the error %v, expected one that mentions %s", err, test.mention)
			}
		})
	}
}

func TestNoConfigurationOfCryptoTLSIsTheDefault(t *testing.T) {
	for _, config := range []*tls.Config{nil, {}} {
		mapped, err := openssl.FromTLS(config, nil)
		if err != nil {
			t.Fatal(err)
		}
		mapped.Library = testLibrary
		client, err := openssl.New(mapped)
		if err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
	}
}

// OpenSSL itself would accept the certificate of localhost for some of these names, or would send them as they are.
func TestNamesThatAreNoHostsAreRefused(t *testing.T) {
	p := opensslProvider(t, openssl.Config{})
	for _, name := range []string{
		"", ".", "..", ".localhost", ".com", "localhost..", "local..host", "*", "*.example.com", "local host", "localhost\n", "a\x00b", "bücher.example",
		"-localhost", "[::1]", "[127.0.0.1]", "localhost:443", "https://localhost", "user@localhost", "local/host", "127.0.0.1/8", "::1::", "localhost%lo",
		strings.Repeat("a.", 126) + "aa", "\xff",
	} {
		client, server := net.Pipe()
		if conn, err := p.connect(client, name); err == nil {
			_ = conn.Close()
			t.Errorf("the name %q is accepted", name)
		} else if !strings.Contains(err.Error(), "ServerName") {
			t.Errorf("the name %q is refused with %v", name, err)
		}
		if name != "" {
			if other, err := openssl.New(openssl.Config{ServerName: name, Library: testLibrary}); err == nil {
				_ = other.Close()
				t.Errorf("the name %q is accepted in a configuration", name)
			}
		}
		_, _ = client.Close(), server.Close()
	}
}

func TestNamesOfHostsHaveSeveralForms(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, &tls.Config{Certificates: []tls.Certificate{authority.issue(t, func(c *x509.Certificate) {
		c.DNSNames = []string{"localhost", "under_score.example", "xn--bcher-kva.example", "1.example", strings.Repeat("a.", 126) + "a"}
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP("fe80::1")}
	}).pair(t)}}, echo)
	for name, onlyOpenSSL := range map[string]bool{
		"localhost": false, "LocalHost": false, "localhost.": false, "under_score.example": false, "xn--bcher-kva.example": false, "1.example": false,
		strings.Repeat("a.", 126) + "a": false, "127.0.0.1": false, "::ffff:127.0.0.1": false, "fe80::1": false, "FE80:0::1": false,
		"fe80::1%lo": true, // crypto/tls also compares the zone of the address
	} {
		t.Run(name, func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				err := roundTrip(p.dial(t, address, name), "hello")
				if refused := err != nil; refused != (onlyOpenSSL && !p.isOpenSSL) {
					t.Error(err)
				}
			})
		})
	}
}

func TestProtocolsMayBeManyAndTwice(t *testing.T) {
	authority := newAuthority(t)
	server := authority.serverConfig(t)
	server.NextProtos = []string{"last"}
	address := serve(t, server, echo)
	for name, protocols := range map[string][]string{
		"twice":       {"a", "a", "last", "last"},
		"of 255 byte": {strings.Repeat("a", 255), "last"},
		"16 KiB":      append(slices.Repeat([]string{strings.Repeat("a", 255)}, 63), "last"),
	} {
		t.Run(name, func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem, NextProtos: protocols}, func(t *testing.T, p provider) {
				conn := p.dial(t, address, "localhost")
				if err := roundTrip(conn, "hello"); err != nil {
					t.Fatal(err)
				}
				if got := conn.ConnectionState().NegotiatedProtocol; got != "last" {
					t.Errorf("the protocol is %q", got)
				}
			})
		})
	}
}

func TestAProtocolThatWasNotOfferedIsNotAccepted(t *testing.T) {
	offered := []string{"h2", "http/1.1", strings.Repeat("a", 255)}
	for chosen, expected := range map[string]bool{
		"h2": true, "http/1.1": true, strings.Repeat("a", 255): true,
		"": false, "h": false, "h2c": false, "http/1.0": false, "\x08http/1.1": false, strings.Repeat("a", 254): false,
	} {
		if accepted, err := openssl.Offers(offered, chosen); accepted != expected || err != nil {
			t.Errorf("%q: accepted is %t (%v), expected %t", chosen, accepted, err, expected)
		}
	}
	if accepted, err := openssl.Offers(nil, "h2"); accepted || err != nil {
		t.Errorf("a protocol is accepted where none was offered (%v)", err)
	}
}
