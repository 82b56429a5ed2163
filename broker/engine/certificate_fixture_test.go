// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

// certificateKeys makes each kind of key once for all tests.
var certificateKeys sync.Map

// certificateKey returns a key of a kind such as "rsa-2048", "p-256" or "ed25519". A name after a slash distinguishes keys of the
// same kind.
func certificateKey(t testing.TB, kind string) crypto.Signer {
	t.Helper()
	make := sync.OnceValues(func() (crypto.Signer, error) {
		var bits int
		name, _, _ := strings.Cut(kind, "/")
		switch {
		case name == "ed25519":
			_, key, err := ed25519.GenerateKey(rand.Reader)
			return key, err
		case strings.HasPrefix(name, "rsa-"):
			if _, err := fmt.Sscanf(name, "rsa-%d", &bits); err != nil {
				return nil, err
			}
			return rsa.GenerateKey(rand.Reader, bits)
		default:
			curve := map[string]elliptic.Curve{
				"p-224": elliptic.P224(), "p-256": elliptic.P256(), "p-384": elliptic.P384(), "p-521": elliptic.P521(),
			}[name]
			return ecdsa.GenerateKey(curve, rand.Reader)
		}
	})
	entry, _ := certificateKeys.LoadOrStore(kind, make)
	key, err := entry.(func() (crypto.Signer, error))()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// authority makes a self-signed certificate of a certificate authority. The function argument may change the template before.
func authority(t testing.TB, kind string, change func(*x509.Certificate)) engine.Issuer {
	t.Helper()
	key := certificateKey(t, kind)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "Issuer " + kind, Organization: []string{"Example"}},
		NotBefore:             time.Now().Add(-24 * time.Hour),
		NotAfter:              time.Now().Add(20 * 365 * 24 * time.Hour),
		BasicConstraintsValid: true,
		IsCA:                  true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if change != nil {
		change(template)
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

// csr makes a certificate request in PEM. The function argument may change the template before. Keys that take long to make are
// read from files.
func csr(t testing.TB, kind string, change func(*x509.CertificateRequest)) []byte {
	t.Helper()
	if file, err := os.ReadFile(filepath.Join("testdata", "certificate", kind+".csr")); err == nil {
		return file
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "app", Country: []string{"DE"}}}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, certificateKey(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// certificateProfile compiles the catalogue, or a profile whose SignCertificate
// has these lines.
func certificateProfile(t testing.TB, name string, lines ...string) *profile.CertificatePolicy {
	t.Helper()
	text := catalogue.Profiles
	if len(lines) > 0 {
		text = []byte("- Name: " + name + "\n  API:\n    SignCertificate:\n      " + strings.Join(lines, "\n      ") + "\n")
	}
	set, problems := profile.Compile(profile.FileName, text)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, ok := set.Lookup(name)
	if !ok {
		t.Fatalf("no profile %q", name)
	}
	return p.Certificate()
}

// anyKeys is the rest of a profile that allows every key.
var anyKeys = []string{
	"Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 8760h}",
	"KeyConstraints:",
	"  Subject: {RSA: {MinKeySize: 1024, MaxKeySize: 16384}, ECDSA: {MinKeySize: 224, MaxKeySize: 521}, Ed25519: {MinKeySize: 256, MaxKeySize: 256}}",
	"  Issuer: {RSA: {MinKeySize: 1024, MaxKeySize: 16384}, ECDSA: {MinKeySize: 224, MaxKeySize: 521}, Ed25519: {MinKeySize: 256, MaxKeySize: 256}}",
}

// permissive compiles a profile that allows every key and signs with ECDSA and
// SHA-256, unless the lines say otherwise.
func permissive(t testing.TB, lines ...string) *profile.CertificatePolicy {
	t.Helper()
	if !strings.Contains(strings.Join(lines, "\n"), "SignAlg:") {
		lines = append(lines, "SignAlg: ecdsa", "HashAlg: sha-256")
	}
	return certificateProfile(t, "permissive", append(lines, anyKeys...)...)
}

// issued issues a certificate and parses it. It fails the test if the certificate is refused.
func issued(t testing.TB, policy *profile.CertificatePolicy, issuer engine.Issuer, request engine.CertificateRequest) *x509.Certificate {
	t.Helper()
	der, err := engine.IssueCertificate(policy, issuer, request, time.Now())
	if err != nil {
		t.Fatalf("IssueCertificate: %v", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// runOpenSSL runs openssl and returns its output. It fails the test if openssl fails.
func runOpenSSL(t testing.TB, input []byte, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "openssl", args...)
	command.Stdin = bytes.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// verifyByOpenSSL builds the path from a certificate to its issuer, by OpenSSL's
// strict rules of RFC 5280.
func verifyByOpenSSL(t testing.TB, issuer, certificate *x509.Certificate) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "issuer.pem")
	if err := os.WriteFile(file, certificatePEM(issuer), 0o600); err != nil {
		t.Fatal(err)
	}
	runOpenSSL(t, certificatePEM(certificate), "verify", "-x509_strict", "-check_ss_sig", "-CAfile", file)
}

func certificatePEM(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}
