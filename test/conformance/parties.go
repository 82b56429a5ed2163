// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// party is an issuer or a subject with a key of one kind.
type party struct {
	kind                  string
	algorithm             string // as profiles name it
	bits                  int
	key, certificate, csr string // in PEM
}

func newParties() ([]party, error) {
	var parties []party
	for _, of := range []struct {
		kind, algorithm string
		bits            int
		key             func() (crypto.Signer, error)
	}{
		{"RSA 3072", "RSA", 3072, func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 3072) }},
		{"P-256", "ECDSA", 256, func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }},
		{"P-384", "ECDSA", 384, func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) }},
		{"P-521", "ECDSA", 521, func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P521(), rand.Reader) }},
		{"Ed25519", "Ed25519", 256, func() (crypto.Signer, error) { _, key, err := ed25519.GenerateKey(rand.Reader); return key, err }},
	} {
		key, err := of.key()
		if err != nil {
			return nil, fmt.Errorf("make a key of %s: %w", of.kind, err)
		}
		made, err := newParty(key)
		if err != nil {
			return nil, fmt.Errorf("make an issuer and a request with a key of %s: %w", of.kind, err)
		}
		made.kind, made.algorithm, made.bits = of.kind, of.algorithm, of.bits
		parties = append(parties, made)
	}
	return parties, nil
}

func newParty(key crypto.Signer) (party, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return party{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer", Organization: []string{"Example"}, Country: []string{"DE"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(20, 0, 0),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return party{}, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:        pkix.Name{CommonName: "web.shop.example.com", Organization: []string{"Example"}, Country: []string{"DE"}},
		DNSNames:       []string{"web.shop.example.com"},
		IPAddresses:    []net.IP{net.IPv4(192, 0, 2, 1)},
		URIs:           []*url.URL{{Scheme: "spiffe", Host: "example.com", Path: "/ns/shop"}},
		EmailAddresses: []string{"ops@example.com"},
	}, key)
	if err != nil {
		return party{}, err
	}
	return party{
		key:         toPEM("PRIVATE KEY", private),
		certificate: toPEM("CERTIFICATE", certificate),
		csr:         toPEM("CERTIFICATE REQUEST", csr),
	}, nil
}

func toPEM(label string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
}

// verifyByOpenSSL lets OpenSSL verify a certificate against its issuer, strictly.
func verifyByOpenSSL(ctx context.Context, der []byte, issuer string) verdict {
	dir, err := os.MkdirTemp("", "certificate")
	if err != nil {
		return failed("%v", err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{"ca.crt": issuer, "app.crt": toPEM("CERTIFICATE", der)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return failed("%v", err)
		}
	}
	cmd := exec.CommandContext(ctx, "openssl", "verify", "-x509_strict", "-check_ss_sig", "-CAfile", "ca.crt", "app.crt")
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil || string(bytes.TrimSpace(output)) != "app.crt: OK" {
		return failed("OpenSSL does not verify it: %v: %s", err, bytes.TrimSpace(output))
	}
	return passed()
}
