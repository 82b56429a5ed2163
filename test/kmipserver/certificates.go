// SPDX-License-Identifier: Apache-2.0

package kmipserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// makeCertificates makes an authority, and certificates of the servers and of a client.
func (s *Servers) makeCertificates(t testing.TB) {
	t.Helper()
	authority := template("authority")
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign
	issuer := s.certify(t, "ca", authority, nil)

	server := template(s.Host)
	server.IPAddresses = []net.IP{net.ParseIP(s.Host)}
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	s.certify(t, "server", server, issuer)

	client := template("broker")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} // PyKMIP demands it
	s.certify(t, "client", client, issuer)
	s.Certificate, s.Key = filepath.Join(s.Folder, "client.crt"), filepath.Join(s.Folder, "client.key")
	s.Authority = filepath.Join(s.Folder, "ca.crt")
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// issuing is the certificate of an authority with its key.
type issuing struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// certify writes a certificate and its key as PEM files. Without an issuer the certificate is self-signed.
func (s *Servers) certify(t testing.TB, name string, certificate *x509.Certificate, issuer *issuing) *issuing {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own := &issuing{certificate, key}
	if issuer == nil {
		issuer = own
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, issuer.certificate, key.Public(), issuer.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der},
		name + ".key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(s.Folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return own
}
