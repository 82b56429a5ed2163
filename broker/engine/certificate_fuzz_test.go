// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/internal/fuzzmemory"
)

// seeds adds the files of testdata and broken variants of each.
func seeds(f *testing.F, pattern string, add func([]byte)) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "certificate", pattern))
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds %s: %v", pattern, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		add(text)
		add(text[:len(text)/2])
		add(damage(text, len(text)/3))
		add(relabel(text, "PRIVATE KEY"))
		block, _ := pem.Decode(text)
		add(block.Bytes)
	}
	add(nil)
	add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"))
}

// inPEM lets the fuzzer change DER as well, which is hard to do through base64.
func inPEM(label string, text []byte) []byte {
	if len(text) == 0 || bytes.HasPrefix(text, []byte("-----")) {
		return text
	}
	return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: text})
}

// checkRefusal checks that messages have only text that clients can print.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var refusal *engine.InputError
	if !errors.As(err, &refusal) {
		t.Fatalf("error of type %T, want one about the input: %v", err, err)
	}
	if text := err.Error(); len(text) > 2048 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		t.Errorf("a message that is long or of several lines: %q", text)
	}
}

// FuzzCSR checks that the certificate for any request is within the profile: key, subject, period and extensions.
func FuzzCSR(f *testing.F) {
	seeds(f, "*.csr", func(text []byte) { f.Add(text, "CN=x", uint64(0)) })
	policy := permissive(f, "SubjectAltNames: {Rule: copy}", "KeyUsage: [digitalSignature]")
	issuer := authority(f, "p-256", nil)
	now := time.Now()
	f.Fuzz(func(t *testing.T, text []byte, name string, notAfter uint64) {
		text = inPEM("CERTIFICATE REQUEST", text)
		request := engine.CertificateRequest{CSR: text, Subject: name, NotAfter: &notAfter}
		if notAfter == 0 {
			request.NotAfter = nil
		}
		var der []byte
		var err error
		fuzzmemory.Check(t, len(text)+len(name), fuzzmemory.PerByte, func() { der, err = engine.IssueCertificate(policy, issuer, request, now) })
		if err != nil {
			checkRefusal(t, err)
			return
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatalf("a certificate that cannot be read: %v", err)
		}
		csr := parseRequest(t, text)
		if name == "" && !bytes.Equal(certificate.RawSubject, csr.RawSubject) {
			t.Errorf("subject %x, want %x", certificate.RawSubject, csr.RawSubject)
		}
		if !bytes.Equal(certificate.RawSubjectPublicKeyInfo, csr.RawSubjectPublicKeyInfo) {
			t.Errorf("public key %x, want %x", certificate.RawSubjectPublicKeyInfo, csr.RawSubjectPublicKeyInfo)
		}
		earliest, latest := policy.Window(now)
		if certificate.NotBefore.Before(earliest) || certificate.NotAfter.After(latest) || certificate.NotAfter.Before(certificate.NotBefore) {
			t.Errorf("valid from %s to %s", certificate.NotBefore, certificate.NotAfter)
		}
		for _, e := range extensionsOf(certificate) {
			if !slices.Contains([]string{"2.5.29.14", "2.5.29.15", "2.5.29.17", "2.5.29.19", "2.5.29.35"}, e.ID) {
				t.Errorf("extension %s, which the profile does not have", e.ID)
			}
		}
		if certificate.IsCA {
			t.Error("an authority")
		}
	})
}

// FuzzIssuerCertificate checks that the broker accepts only the matching certificate for a key.
func FuzzIssuerCertificate(f *testing.F) {
	seeds(f, "*.crt", func(text []byte) { f.Add(text) })
	policy := permissive(f)
	key := certificateKey(f, "p-384")
	request := engine.CertificateRequest{CSR: csr(f, "p-256", nil)}
	f.Fuzz(func(t *testing.T, text []byte) {
		certificate, err := engine.ParseCertificate("caCert", inPEM("CERTIFICATE", text))
		if err == nil {
			_, err = engine.IssueCertificate(policy, engine.Issuer{Key: key, Certificate: certificate}, request, time.Now())
		}
		if err == nil {
			t.Fatal("a certificate was signed under a certificate of another key")
		}
		checkRefusal(t, err)
	})
}

// FuzzAlternativeNames checks that a certificate has the requested names unchanged, or none of them. With patterns, it has only
// names that match.
func FuzzAlternativeNames(f *testing.F) {
	for _, seed := range []string{
		"\x30\x05\x82\x03a.b", "\x30\x06\x87\x04\x0a\x01\x02\x03", "\x30\x05\x88\x03\x2a\x03\x04", "\x30\x00", "\x30\x06\x81\x04a@b.", "\x30\x05\x86\x03a:b",
		"\x30\x0f\x82\x0dx.example.com", "\x30\x11\x82\x0da.example.com\x82\x00", "\x30\x0f\x82\x0d*.example.com",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	copied := permissive(f, "SubjectAltNames: {Rule: copy}", "SKIHashAlg: sha-256")
	matched := permissive(f, "SubjectAltNames: {Rule: patterns, DNS: ['*.example.com'], IP: [10.0.0.0/8], Email: ['*@example.com'], URI: ['spiffe://example.com/*']}")
	issuer, key := authority(f, "p-256", nil), certificateKey(f, "ed25519")
	f.Fuzz(func(t *testing.T, names []byte, patterns bool) {
		template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "Jane Doe"}, ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: names}}}
		request, err := x509.CreateCertificateRequest(rand.Reader, template, key)
		if err != nil {
			t.Fatal(err)
		}
		policy := copied
		if patterns {
			policy = matched
		}
		der, err := engine.IssueCertificate(policy, issuer, engine.CertificateRequest{CSR: inPEM("CERTIFICATE REQUEST", request)}, time.Now())
		if err != nil {
			checkRefusal(t, err)
			return
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatalf("names %x: a certificate that cannot be read: %v", names, err)
		}
		for _, e := range certificate.Extensions {
			if e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) && !bytes.Equal(e.Value, names) {
				t.Errorf("names %x, want %x", e.Value, names)
			}
		}
		if !patterns {
			return
		}
		for _, name := range certificate.DNSNames {
			if !strings.HasSuffix(strings.ToLower(name), ".example.com") || strings.Count(name, ".") != 2 {
				t.Errorf("DNS name %q", name)
			}
		}
		for _, address := range certificate.IPAddresses {
			if v4 := address.To4(); v4 == nil || v4[0] != 10 {
				t.Errorf("address %v", address)
			}
		}
		for _, uri := range certificate.URIs {
			if !strings.EqualFold(uri.Scheme, "spiffe") || !strings.EqualFold(uri.Host, "example.com") {
				t.Errorf("URI %v", uri)
			}
		}
		for _, address := range certificate.EmailAddresses {
			if !strings.HasSuffix(strings.ToLower(address), "@example.com") {
				t.Errorf("mail address %q", address)
			}
		}
	})
}
