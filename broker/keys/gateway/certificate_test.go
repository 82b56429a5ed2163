// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bundle is what a kubelet writes: a private key, and the certificate for it.
type bundle struct{ key, certificate []byte }

func (b bundle) text() string { return string(b.key) + string(b.certificate) }

// newBundle returns a self-signed certificate for an address, with a serial number.
func newBundle(t *testing.T, serial int64) bundle {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return bundle{pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEachConnectionHasTheCertificateOfTheFileAtItsBegin(t *testing.T) {
	server, dir := newBundle(t, 1), t.TempDir()
	pair, err := tls.X509KeyPair(server.certificate, server.key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, ClientAuth: tls.RequireAnyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // the cleanup closes it once
	serials := make(chan int64, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if err := conn.(*tls.Conn).HandshakeContext(t.Context()); err == nil {
				serials <- conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
			} else {
				serials <- -1
			}
			_ = conn.Close() // the client has the reply already
		}
	}()
	presenting := &transport{authorities: filepath.Join(dir, "ca.crt"), certificate: filepath.Join(dir, "certificate.pem"), connections: &connections{}}
	writeFile(t, presenting.authorities, string(server.certificate))
	for _, serial := range []int64{7, 8, 9} {
		writeFile(t, presenting.certificate, newBundle(t, serial).text())
		raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn, _, err := presenting.ClientHandshake(t.Context(), "127.0.0.1", raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection ends with %v, expected EOF", err)
		}
		_ = conn.Close() // the server has closed it
		if found := <-serials; found != serial {
			t.Errorf("the gateway sees the certificate %d, want %d", found, serial)
		}
	}
}

func TestACertificateThatCannotBeUsedIsOneClearSentenceWithoutTheKey(t *testing.T) {
	own, other, dir := newBundle(t, 1), newBundle(t, 2), t.TempDir()
	with := &transport{authorities: filepath.Join(dir, "ca.crt"), certificate: filepath.Join(dir, "certificate.pem"), connections: &connections{}}
	writeFile(t, with.authorities, string(own.certificate))
	if _, err := with.client(); err == nil || !strings.Contains(err.Error(), "cannot read the certificate of the pod") {
		t.Errorf("without a file, found %v", err)
	}
	for sentence, test := range map[string]struct{ content, want string }{
		"the kubelet's file":             {own.text(), ""},
		"a text in front of it":          {"# a comment\n" + own.text(), ""},
		"a key without a certificate":    {string(own.key), "has not both a certificate and a private key, expected both in PEM"},
		"a certificate without a key":    {string(own.certificate), "has not both a certificate and a private key, expected both in PEM"},
		"nothing":                        {"", "has not both a certificate and a private key, expected both in PEM"},
		"the key of another certificate": {string(other.key) + string(own.certificate), "cannot use the certificate of the pod in " + with.certificate},
		"a file that is too large":       {own.text() + strings.Repeat("\n", maxCertificateSize), "has more than 65536 bytes"},
		"a key that cannot be read":      {strings.Replace(string(own.key), "M", "N", 3) + string(own.certificate), "cannot use the certificate of the pod in " + with.certificate},
		"a certificate that is no X.509": {string(own.key) + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), "cannot use the certificate of the pod in " + with.certificate},
	} {
		t.Run(sentence, func(t *testing.T) {
			writeFile(t, with.certificate, test.content)
			_, err := with.client()
			if test.want == "" {
				if err != nil {
					t.Errorf("found %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("found %v, want %q", err, test.want)
			}
			for _, each := range []bundle{own, other} {
				block, _ := pem.Decode(each.key)
				if secret := block.Bytes[36:68]; bytes.Contains([]byte(err.Error()), secret) || strings.Contains(err.Error(), base64.StdEncoding.EncodeToString(secret)[:20]) {
					t.Errorf("the error has the key: %v", err)
				}
			}
		})
	}
}
