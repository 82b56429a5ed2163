// SPDX-License-Identifier: Apache-2.0

//go:build redis

package redis_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/session"
	"github.com/crypto-broker/crypto-broker-operator/test/redisserver"
)

// rights are the rights in docs/session-redis.md.
func rights(t testing.TB, password string) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/session-redis.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if of, found := strings.CutPrefix(line, "user "); found {
			return strings.Fields(strings.Replace(of, "PASSWORD", password, 1))
		}
	}
	t.Fatal("the page has no user")
	return nil
}

func TestTheRightsOfThePageAreEnough(t *testing.T) {
	server := redisserver.Start(t)
	server.Ask(t, append([]string{"ACL", "SETUSER"}, rights(t, "secret")...)...)
	server.Ask(t, "ACL", "SETUSER", "default", "off")
	p := newPlace(t, "Addresses: ["+server.Address+"]", "WithoutTLS: true", "WrappingKey: sessions", "User: broker", "Database: 1", "Timeout: 10s")
	p.write(p.settings, "password", "wrong")
	a := p.open()
	want(t, "begin with a wrong password", a.Add(t.Context(), record(id), key), session.ErrUnavailable)
	if !p.hasObserved("WRONGPASS") || p.hasObserved("wrong\n") {
		t.Errorf("the observer was told %q", p.observed)
	}
	p.write(p.settings, "password", "secret") // the next connection reads the changed password
	a, b := begun(t, p)
	want(t, "a request", b.Accept(t.Context(), id, acceptance(1)), nil)
	later := acceptance(2)
	later.Timestamp, later.Floor = later.Timestamp+1, now.UnixMilli()+1
	want(t, "a request that forgets another one", b.Accept(t.Context(), id, later), nil)
	want(t, "a reply", a.CountReply(t.Context(), id, 100), nil)
	want(t, "a forged request", a.Check(t.Context(), id), nil)
	want(t, "the end", a.End(t.Context(), id, record(id).Owner), nil)
	if !a.Serves() || !b.Serves() {
		t.Errorf("the observer was told %q", p.observed)
	}
}

func TestConnectionsHaveTLSWithCertificatesOfBothSides(t *testing.T) {
	server := redisserver.New(t)
	folder := t.TempDir()
	authority := certify(t, folder, "ca", nil, nil)
	certify(t, folder, "server", net.ParseIP(server.Host), authority)
	certify(t, folder, "client", nil, authority)
	certify(t, folder, "other", nil, nil)
	at := func(name string) string { return filepath.Join(folder, name) }
	server.RunAs(t, "--save", "", "--tls-port", "6379", "--tls-cert-file", at("server.crt"), "--tls-key-file", at("server.key"),
		"--tls-ca-cert-file", at("ca.crt"), "--tls-auth-clients", "yes", "--port", "0")
	connecting := func(t *testing.T, authority, certificate string) *place {
		p := newPlace(t, "Addresses: ["+server.Address+"]", "WrappingKey: sessions", "Timeout: 10s")
		for name, from := range map[string]string{"ca.crt": authority + ".crt", "tls.crt": certificate + ".crt", "tls.key": certificate + ".key"} {
			if text, err := os.ReadFile(at(from)); err != nil {
				t.Fatal(err)
			} else if certificate != "" || name == "ca.crt" {
				p.write(p.settings, name, string(text))
			}
		}
		return p
	}
	t.Run("the right ones", func(t *testing.T) {
		a, b := begun(t, connecting(t, "ca", "client"))
		want(t, "a request", a.Accept(t.Context(), id, acceptance(1)), nil)
		want(t, "the same again", b.Accept(t.Context(), id, acceptance(1)), session.ErrRefused)
	})
	for sentence, test := range map[string]struct{ authority, certificate string }{
		"another authority": {"other", "client"},
		"another client":    {"ca", "other"},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := connecting(t, test.authority, test.certificate)
			want(t, "begin", p.open().Add(t.Context(), record(id), key), session.ErrUnavailable)
			if p.hasObserved("serves") {
				t.Errorf("the observer was told %q", p.observed)
			}
		})
	}
}

// Debian's Redis 7 is made to say that it is Redis 8, which the library asks for both ports.
func TestAClusterOfRedis8IsReachedAtItsPortForTLS(t *testing.T) {
	const plainPort = "6380"
	server := redisserver.New(t)
	folder := t.TempDir()
	authority := certify(t, folder, "ca", nil, nil)
	certify(t, folder, "server", net.ParseIP(server.Host), authority)
	certify(t, folder, "proxy", net.IPv4(127, 0, 0, 1), authority)
	at := func(name string) string { return filepath.Join(folder, name) }
	server.RunAs(t, "--save", "", "--tls-port", redisserver.Port, "--tls-cert-file", at("server.crt"), "--tls-key-file", at("server.key"),
		"--tls-ca-cert-file", at("ca.crt"), "--tls-auth-clients", "no", "--port", plainPort, "--cluster-enabled", "yes",
		"--cluster-announce-ip", server.Host, "--tls-cluster", "yes")
	server.Ask(t, "-p", plainPort, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	answers(t, server, "cluster_state:ok", "-p", plainPort, "CLUSTER", "INFO")
	p := newPlace(t, "Addresses: ["+serveAsRedis8(t, net.JoinHostPort(server.Host, plainPort), at("proxy.crt"), at("proxy.key"))+"]",
		"Cluster: true", "WrappingKey: sessions", "Timeout: 10s")
	text, err := os.ReadFile(at("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	p.write(p.settings, "ca.crt", string(text))
	a, b := begun(t, p)
	want(t, "a request", a.Accept(t.Context(), id, acceptance(1)), nil)
	want(t, "the same again", b.Accept(t.Context(), id, acceptance(1)), session.ErrRefused)
}

// versionOfHello is where the answer to HELLO has the first digit of the version.
var versionOfHello = regexp.MustCompile(`(version\r\n\$\d+\r\n)7`)

// serveAsRedis8 serves a Redis server by TLS at another address, which it returns. It changes the version of the server alone.
func serveAsRedis8(t *testing.T, server, certificate, key string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			redis, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			context.AfterFunc(t.Context(), func() { _, _ = client.Close(), redis.Close() })
			work.Go(func() { _, _ = io.Copy(redis, client); _ = redis.Close() })
			work.Go(func() { _, _ = io.Copy(renumbered{client}, redis); _ = client.Close() })
		}
	})
	return listener.Addr().String()
}

// renumbered changes the version in the bytes that are written.
type renumbered struct{ io.Writer }

func (r renumbered) Write(b []byte) (int, error) {
	return r.Writer.Write(versionOfHello.ReplaceAll(b, []byte("${1}8")))
}

// issuer is a certificate that issues others.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// certify writes a certificate and its key as PEM files. Without an issuer, it is an authority.
func certify(t *testing.T, folder, name string, address net.IP, by *issuer) *issuer {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &issuer{&x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: by == nil,
	}, private}
	if address != nil {
		made.certificate.IPAddresses = []net.IP{address}
	}
	if by == nil {
		by = made
	}
	der, err := x509.CreateCertificate(rand.Reader, made.certificate, by.certificate, private.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return made
}
