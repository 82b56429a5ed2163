// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var serial atomic.Int64

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// newAuthority returns an authority that has signed itself.
func newAuthority(t testing.TB) *authority {
	t.Helper()
	return makeAuthority(t, nil, time.Now().Add(48*time.Hour))
}

// issueAuthority returns an authority that the authority has signed.
func (a *authority) issueAuthority(t testing.TB, notAfter time.Time) *authority {
	t.Helper()
	return makeAuthority(t, a, notAfter)
}

func makeAuthority(t testing.TB, issuer *authority, notAfter time.Time) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	number := serial.Add(1)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: fmt.Sprint("authority ", number)},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: notAfter,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if issuer == nil {
		issuer = &authority{certificate: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.certificate, key.Public(), issuer.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate: certificate, key: key, pem: encodePEM("CERTIFICATE", der)}
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// issued is a certificate with its key.
type issued struct {
	certificate, key []byte // PEM
	number           *big.Int
}

// issue returns a certificate for localhost and 127.0.0.1 that change may change.
func (a *authority) issue(t testing.TB, change func(*x509.Certificate)) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial.Add(1)), Subject: pkix.Name{CommonName: "leaf"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return issued{certificate: encodePEM("CERTIFICATE", der), key: encodePEM("PRIVATE KEY", encoded), number: template.SerialNumber}
}

func forClients(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }

func (i issued) pair(t testing.TB) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(i.certificate, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// serverConfig returns a configuration of a server with a certificate of the authority.
func (a *authority) serverConfig(t testing.TB) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{a.issue(t, nil).pair(t)}, MinVersion: tls.VersionTLS10}
}

// requireClients makes a server demand certificates of an authority.
func requireClients(config *tls.Config, a *authority) *tls.Config {
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	config.ClientCAs.AddCert(a.certificate)
	return config
}

// serve accepts connections with crypto/tls, and closes each when handle has returned. It returns the
// address.
func serve(t testing.TB, config *tls.Config, handle func(*tls.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener, func(raw net.Conn) { handle(tls.Server(raw, config)) })
	return listener.Addr().String()
}

// serveOn accepts connections until the end of the test, and closes each when handle has returned.
func serveOn(t testing.TB, listener net.Listener, handle func(net.Conn)) {
	var running sync.WaitGroup
	var mutex sync.Mutex
	open := map[net.Conn]bool{}
	running.Go(func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			mutex.Lock()
			open[raw] = true
			mutex.Unlock()
			running.Go(func() {
				handle(raw)
				_ = raw.Close()
				mutex.Lock()
				delete(open, raw)
				mutex.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mutex.Lock()
		for raw := range open {
			_ = raw.Close()
		}
		mutex.Unlock()
		running.Wait()
	})
}

// echo sends back what it reads, and closes when the peer has closed its side.
func echo(conn *tls.Conn) {
	if _, err := io.Copy(conn, conn); err == nil {
		_ = conn.Close()
	}
}

// hold waits until the peer closes the connection.
func hold(conn *tls.Conn) { _, _ = io.Copy(io.Discard, conn) }

// roundTrip writes a message to a server that echoes, and reads it.
func roundTrip(conn net.Conn, message string) error {
	if _, err := conn.Write([]byte(message)); err != nil {
		return err
	}
	reply := make([]byte, len(message))
	if _, err := io.ReadFull(conn, reply); err != nil {
		return err
	}
	if string(reply) != message {
		return errors.New("the reply is not the message")
	}
	return nil
}
