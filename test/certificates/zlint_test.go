// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	zx509 "github.com/zmap/zcrypto/x509"
	"github.com/zmap/zlint/v3"
	"github.com/zmap/zlint/v3/lint"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

// sources are the rules that are about any certificate of the Internet. Those of
// the web's browsers and of mail are for public authorities.
var sources = lint.SourceList{lint.RFC3279, lint.RFC5280, lint.RFC5480, lint.RFC5891, lint.RFC6962, lint.RFC8813, lint.Community}

// ofTheCatalogue are findings about what the profiles of the catalogue say: they
// allow digitalSignature and keyEncipherment to clients, whatever their keys.
// Released brokers make such certificates, so they stay.
var ofTheCatalogue = []string{"e_key_usage_and_extended_key_usage_inconsistent", "e_ecdsa_allowed_ku"}

const ours = `
- Name: names
  API:
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-256
      SKIHashAlg: sha-256
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 2160h}
      KeyConstraints: &keys
        Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}, ECDSA: {MinKeySize: 256, MaxKeySize: 521}, Ed25519: {MinKeySize: 256, MaxKeySize: 256}}
        Issuer: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}, ECDSA: {MinKeySize: 256, MaxKeySize: 521}, Ed25519: {MinKeySize: 256, MaxKeySize: 256}}
      KeyUsage: [digitalSignature]
      ExtendedKeyUsage: [serverAuth, clientAuth]
      SubjectAltNames: {Rule: copy}
- Name: authority
  API:
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-384
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 43800h}
      KeyConstraints: *keys
      KeyUsage: [keyCertSign, cRLSign]
      BasicConstraints: {CA: true, PathLenConstraint: 0}
- Name: pss
  API:
    SignCertificate:
      SignAlg: rsa-pss
      HashAlg: sha-256
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 2160h}
      KeyConstraints: *keys
      KeyUsage: [digitalSignature]
- Name: ed25519
  API:
    SignCertificate:
      SignAlg: ed25519
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 2160h}
      KeyConstraints: *keys
      KeyUsage: [digitalSignature]
`

func newKey(t *testing.T, kind string) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch kind {
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 3072)
	case "p-256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "p-384":
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "p-521":
		key, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		t.Fatalf("no kind of key %q", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newIssuer(t *testing.T, kind string) engine.Issuer {
	t.Helper()
	key := newKey(t, kind)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer", Organization: []string{"Example"}, Country: []string{"DE"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(20, 0, 0),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Issuer{Key: key, Certificate: certificate}
}

func newRequest(t *testing.T, kind string) []byte {
	t.Helper()
	template := &x509.CertificateRequest{
		Subject:        pkix.Name{CommonName: "web.shop.example.com", Organization: []string{"Example"}, Country: []string{"DE"}},
		DNSNames:       []string{"web.shop.example.com"},
		IPAddresses:    []net.IP{net.IPv4(192, 0, 2, 1)},
		URIs:           []*url.URL{{Scheme: "spiffe", Host: "example.com", Path: "/ns/shop"}},
		EmailAddresses: []string{"ops@example.com"},
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, newKey(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestCertificatesHaveNoErrorsForALinter(t *testing.T) {
	set, problems := profile.Compile(profile.FileName, append(slices.Clone(catalogue.Profiles), ours...))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	rules, err := lint.GlobalRegistry().Filter(lint.FilterOptions{IncludeSources: sources})
	if err != nil {
		t.Fatal(err)
	}
	issuers := map[string]engine.Issuer{}
	requests := map[string][]byte{}
	for _, kind := range []string{"rsa", "p-256", "p-384", "p-521", "ed25519"} {
		issuers[kind], requests[kind] = newIssuer(t, kind), newRequest(t, kind)
	}
	linted := map[string]int{}
	for _, name := range set.Names() {
		p, _ := set.Lookup(name)
		for issuerKind, issuer := range issuers {
			for requestKind, csr := range requests {
				for variant, request := range map[string]engine.CertificateRequest{
					"as it is": {CSR: csr},
					"with all fields": {CSR: csr, Subject: `CN=web.shop.example.com,OU=Web+OU=Shop,O=Example\, Inc.,C=DE,DC=example,emailAddress=ops@example.com`,
						CRLDistributionPoints: []string{"http://crl.example.com/1.crl", "https://crl.example.com/2.crl"}},
				} {
					der, err := engine.IssueCertificate(p.Certificate(), issuer, request, time.Now())
					var refusal *engine.InputError
					if errors.As(err, &refusal) && strings.Contains(refusal.Problem, " key") {
						continue // which keys a profile allows is the business of the engine's own tests
					}
					if err != nil {
						t.Fatal(err)
					}
					linted[name]++
					t.Run(fmt.Sprintf("%s, issuer %s, subject %s, %s", name, issuerKind, requestKind, variant), func(t *testing.T) {
						lintCertificate(t, der, rules, strings.Contains(ours, "Name: "+name+"\n"))
					})
				}
			}
		}
	}
	for _, name := range set.Names() {
		if linted[name] == 0 {
			t.Errorf("profile %q made no certificate", name)
		}
	}
}

func lintCertificate(t *testing.T, der []byte, rules lint.Registry, strict bool) {
	t.Helper()
	certificate, err := zx509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	for name, result := range zlint.LintCertificateEx(certificate, rules).Results {
		if result.Status >= lint.Warn && (strict || !slices.Contains(ofTheCatalogue, name)) {
			t.Errorf("%s: %s %s", name, result.Status, result.Details)
		}
	}
}
