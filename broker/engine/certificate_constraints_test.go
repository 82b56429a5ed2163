// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// subtrees returns NameConstraints with GeneralNames, each with its tag and content.
func subtrees(t *testing.T, permitted, excluded []asn1.RawValue) pkix.Extension {
	t.Helper()
	type subtree struct{ Base asn1.RawValue }
	wrap := func(bases []asn1.RawValue) (all []subtree) {
		for _, base := range bases {
			base.Class = asn1.ClassContextSpecific
			all = append(all, subtree{base})
		}
		return all
	}
	value, err := asn1.Marshal(struct {
		Permitted []subtree `asn1:"optional,omitempty,tag:0"`
		Excluded  []subtree `asn1:"optional,omitempty,tag:1"`
	}{wrap(permitted), wrap(excluded)})
	if err != nil {
		t.Fatal(err)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 30}, Critical: true, Value: value}
}

// directory is a GeneralName that is a distinguished name.
func directory(t *testing.T, name pkix.Name) asn1.RawValue {
	t.Helper()
	der, err := asn1.Marshal(name.ToRDNSequence())
	if err != nil {
		t.Fatal(err)
	}
	return asn1.RawValue{Tag: 4, IsCompound: true, Bytes: der}
}

// acceptedByOpenSSL reports whether OpenSSL accepts a certificate with its issuer as the root.
func acceptedByOpenSSL(t *testing.T, issuer, certificate *x509.Certificate) bool {
	t.Helper()
	dir := t.TempDir()
	root, leaf := filepath.Join(dir, "root.pem"), filepath.Join(dir, "leaf.pem")
	for file, c := range map[string]*x509.Certificate{root: issuer, leaf: certificate} {
		if err := os.WriteFile(file, certificatePEM(c), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return exec.CommandContext(t.Context(), "openssl", "verify", "-CAfile", root, leaf).Run() == nil
}

// TestAnIssuerCertifiesNoNameThatItsCertificateDoesNotAllow asks OpenSSL for a
// second opinion on each case, by a certificate of the same issuer without the
// constraints.
func TestAnIssuerCertifiesNoNameThatItsCertificateDoesNotAllow(t *testing.T) {
	const asks = "csr asks for a name that the issuer may not certify by the NameConstraints of its certificate: "
	const beginsWithNone = asks + "the subject is not permitted by any constraint"
	dns := func(domains ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.PermittedDNSDomainsCritical, c.PermittedDNSDomains = true, domains }
	}
	german := func(t *testing.T, more ...asn1.RawValue) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.Subject = pkix.Name{Country: []string{"DE"}, CommonName: "Issuer"}
			c.ExtraExtensions = []pkix.Extension{subtrees(t, append(more, directory(t, pkix.Name{Country: []string{"DE"}, Organization: []string{"Example  GmbH"}})), nil)}
		}
	}
	named := func(names ...string) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) { r.DNSNames = names }
	}
	called := func(name pkix.Name) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) { r.Subject = name }
	}
	example := pkix.Name{Country: []string{"DE"}, Organization: []string{"example gmbh"}, CommonName: "app"}
	uri := func(text string) func(*x509.CertificateRequest) {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return func(r *x509.CertificateRequest) { r.URIs = []*url.URL{u} }
	}
	for sentence, c := range map[string]struct {
		constrain func(*x509.Certificate)
		request   func(*x509.CertificateRequest)
		subject   string
		want      string // empty if the certificate is issued
	}{
		"a DNS name within":                 {constrain: dns("example.com"), request: named("app.example.com", "example.com")},
		"a DNS name outside":                {constrain: dns("example.com"), request: named("app.example.com", "app.example.org"), want: asks + `the DNS name "app.example.org" is not permitted by any constraint`},
		"a wildcard outside":                {constrain: dns("example.com"), request: named("*.example.org"), want: asks + `the DNS name "*.example.org" is not permitted by any constraint`},
		"no name of a kind that is listed":  {constrain: dns("example.com"), request: nil},
		"a common name that is a host name": {constrain: dns("example.com"), request: called(pkix.Name{CommonName: "app.example.org"}), want: asks + `the DNS name "app.example.org" is not permitted by any constraint`},
		"a common name beside a DNS name": {constrain: dns("example.com"), request: func(r *x509.CertificateRequest) {
			r.Subject.CommonName = "app.example.org"
			r.DNSNames = []string{"app.example.com"}
		}},
		"a subject of the request": {constrain: dns("example.com"), request: nil, subject: "CN=app.example.org", want: `subject asks for a name that the issuer may not certify by the NameConstraints of its certificate: the DNS name "app.example.org" is not permitted by any constraint`},
		"an excluded DNS name": {constrain: func(c *x509.Certificate) {
			c.PermittedDNSDomainsCritical, c.ExcludedDNSDomains = true, []string{"internal.example.com"}
		}, request: named("db.internal.example.com"), want: asks + `the DNS name "db.internal.example.com" is excluded by the constraint "internal.example.com"`},
		"an address outside": {constrain: func(c *x509.Certificate) {
			c.PermittedIPRanges = []*net.IPNet{{IP: net.IPv4(10, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}}
		}, request: func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(192, 168, 0, 1)} }, want: asks + `the IP address 192.168.0.1 is not permitted by any constraint`},
		"an address of mail outside":        {constrain: func(c *x509.Certificate) { c.PermittedEmailAddresses = []string{"example.com"} }, request: func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"ops@example.org"} }, want: asks + `the mail address "ops@example.org" is not permitted by any constraint`},
		"an address of mail in the subject": {constrain: func(c *x509.Certificate) { c.PermittedEmailAddresses = []string{"example.com"} }, request: called(pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, Value: asn1.RawValue{Tag: asn1.TagIA5String, Bytes: []byte("ops@example.org")}}}}), want: asks + `the mail address "ops@example.org" is not permitted by any constraint`},
		"a URI outside":                     {constrain: func(c *x509.Certificate) { c.PermittedURIDomains = []string{"example.com"} }, request: uri("spiffe://example.org/app"), want: asks + `the URI "spiffe://example.org/app" is not permitted by any constraint`},
		"a URI within":                      {constrain: func(c *x509.Certificate) { c.PermittedURIDomains = []string{"example.com"} }, request: uri("spiffe://example.com/app")},
		"a subject within, in another case": {constrain: german(t), request: called(example)},
		"a subject of another organization": {constrain: german(t), request: called(pkix.Name{Country: []string{"DE"}, Organization: []string{"Other"}}), want: beginsWithNone},
		"a subject above the permitted one": {constrain: german(t), request: called(pkix.Name{Country: []string{"DE"}}), want: beginsWithNone},
		"a subject that is excluded": {constrain: func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{subtrees(t, nil, []asn1.RawValue{directory(t, pkix.Name{Country: []string{"DE"}})})}
		}, request: called(example), want: asks + "the subject is excluded by a constraint of directory names"},
		"both kinds, and the DNS name is not": {constrain: german(t, asn1.RawValue{Tag: 2, Bytes: []byte("example.com")}), request: func(r *x509.CertificateRequest) { r.Subject = example; r.DNSNames = []string{"example.org"} }, want: asks + `the DNS name "example.org" is not permitted by any constraint`},
	} {
		t.Run(sentence, func(t *testing.T) {
			var subject pkix.Name
			constrained := authority(t, "p-384", func(template *x509.Certificate) { c.constrain(template); subject = template.Subject })
			free := authority(t, "p-384", func(template *x509.Certificate) { template.Subject = subject })
			policy := permissive(t, "SubjectAltNames: {Rule: copy}")
			request := engine.CertificateRequest{CSR: csr(t, "p-256", c.request), Subject: c.subject}
			anyway := issued(t, policy, free, request)
			if accepted := acceptedByOpenSSL(t, constrained.Certificate, anyway); accepted != (c.want == "") {
				t.Errorf("OpenSSL accepts the certificate: %t", accepted)
			}
			if c.want != "" {
				refusedWith(t, policy, constrained, request, c.want)
				return
			}
			issued(t, policy, constrained, request)
		})
	}
}

func TestANameOfAKindThatNobodyCanJudgeIsNotCertifiedWhereItIsRestricted(t *testing.T) {
	registered := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 8, Bytes: []byte{0x2a, 0x03}}
	value, err := asn1.Marshal([]asn1.RawValue{registered})
	if err != nil {
		t.Fatal(err)
	}
	with := func(r *x509.CertificateRequest) {
		r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
	}
	constrained := authority(t, "p-384", func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{subtrees(t, []asn1.RawValue{{Tag: 8, Bytes: []byte{0x2a}}}, nil)}
	})
	policy := permissive(t, "SubjectAltNames: {Rule: copy}")
	refusedWith(t, policy, constrained, engine.CertificateRequest{CSR: csr(t, "p-256", with)},
		`csr asks for a name that the issuer may not certify by the NameConstraints of its certificate: names of the kind "registered" are restricted by constraints that this broker cannot check, expected no such names`)
	issued(t, policy, constrained, engine.CertificateRequest{CSR: csr(t, "p-256", nil)})
	issued(t, policy, authority(t, "p-384", nil), engine.CertificateRequest{CSR: csr(t, "p-256", with)})
}

func TestAnAddressOfIPv4InOneOfIPv6IsCertifiedOnlyByAnIssuerOfBoth(t *testing.T) {
	address := net.ParseIP("::ffff:10.1.2.3").To16()
	value, err := asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 7, Bytes: address}})
	if err != nil {
		t.Fatal(err)
	}
	request := engine.CertificateRequest{CSR: csr(t, "p-256", func(r *x509.CertificateRequest) {
		r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
	})}
	policy := permissive(t, "SubjectAltNames: {Rule: copy}")
	anyway := issued(t, policy, authority(t, "p-384", nil), request)
	if err := anyway.VerifyHostname("10.1.2.3"); err != nil {
		t.Errorf("the verifier of Go: %v", err)
	}
	network := func(text string) []*net.IPNet {
		_, found, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		return []*net.IPNet{found}
	}
	refusedWith(t, policy, authority(t, "p-384", func(c *x509.Certificate) { c.ExcludedIPRanges = network("10.0.0.0/8") }), request,
		`csr asks for a name that the issuer may not certify by the NameConstraints of its certificate: the IP address 10.1.2.3 is excluded by the constraint 10.0.0.0 with the mask ff000000`)
	refusedWith(t, policy, authority(t, "p-384", func(c *x509.Certificate) { c.PermittedIPRanges = network("::/0") }), request,
		`csr asks for a name that the issuer may not certify by the NameConstraints of its certificate: the IP address 10.1.2.3 is not permitted by any constraint`)
	issued(t, policy, authority(t, "p-384", func(c *x509.Certificate) { c.ExcludedIPRanges = network("11.0.0.0/8") }), request)
	issued(t, policy, authority(t, "p-384", func(c *x509.Certificate) {
		c.PermittedIPRanges = append(network("10.0.0.0/8"), network("::/0")...)
	}), request)
}

// FuzzNameConstraints checks that an issuer with any constraints certifies or
// refuses names, and never for a reason inside the broker.
func FuzzNameConstraints(f *testing.F) {
	for _, constraints := range []string{
		"\x30\x0f\xa0\x0d\x30\x0b\x82\x09a.example", "\x30\x0e\xa1\x0c\x30\x0a\x87\x08\x0a\x00\x00\x00\xff\x00\x00\x00",
		"\x30\x06\xa0\x04\x30\x02\xa4\x00", "\x30\x08\xa0\x06\x30\x04\xa4\x02\x30\x00", "\x30\x07\xa0\x05\x30\x03\x88\x01\x2a", "\x30\x00",
		"\x30\x13\xa0\x11\x30\x0f\xa4\x0d\x30\x0b\x31\x09\x30\x07\x06\x03\x55\x04\x06\x13\x00",
	} {
		for _, names := range []string{"\x30\x0b\x82\x09a.example", "\x30\x06\x87\x04\x0a\x00\x00\x01", "\x30\x05\x88\x03\x2a\x03\x04", "\x30\x04\xa4\x02\x30\x00", "\x30\x02\xa4\x00"} {
			f.Add([]byte(constraints), []byte(names))
		}
	}
	policy := permissive(f, "SubjectAltNames: {Rule: copy}")
	key := certificateKey(f, "p-256")
	f.Fuzz(func(t *testing.T, constraints, names []byte) {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer"}, IsCA: true, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 30}, Critical: true, Value: constraints}},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return // callers meet the same
		}
		request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
			Subject: pkix.Name{CommonName: "a.example"}, ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: names}},
		}, key)
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.IssueCertificate(policy, engine.Issuer{Key: key, Certificate: certificate}, engine.CertificateRequest{CSR: inPEM("CERTIFICATE REQUEST", request)}, time.Now())
		if err != nil {
			checkRefusal(t, err)
		}
	})
}

func TestConstraintsThatCannotBeAppliedLetNoNamePass(t *testing.T) {
	const asks = "csr asks for a name that the issuer may not certify by the NameConstraints of its certificate: "
	named := func(count int) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) {
			for i := range count {
				r.DNSNames = append(r.DNSNames, fmt.Sprintf("a%d.example.com", i))
			}
		}
	}
	// A subtree of example.com with a minimum depth of one.
	deep := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 30}, Value: []byte("\x30\x14\xa0\x12\x30\x10\x82\x0bexample.com\x80\x01\x01")}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("b%d.example.com", i)
	}
	for sentence, c := range map[string]struct {
		constrain func(*x509.Certificate)
		names     int
		want      string
	}{
		"a depth":              {func(c *x509.Certificate) { c.ExtraExtensions = []pkix.Extension{deep} }, 1, `the DNS name "a0.example.com" cannot be checked, because the constraints of its kind have a minimum or a maximum, expected neither`},
		"too many of them":     {func(c *x509.Certificate) { c.ExcludedDNSDomains = many }, 1050, "it has too many names and constraints to compare, expected at most 1048576 pairs"},
		"as many as there may": {func(c *x509.Certificate) { c.ExcludedDNSDomains = many }, 1000, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			policy, issuer := permissive(t, "SubjectAltNames: {Rule: copy}"), authority(t, "p-384", c.constrain)
			request := engine.CertificateRequest{CSR: csr(t, "p-256", named(c.names))}
			if c.want != "" {
				refusedWith(t, policy, issuer, request, asks+c.want)
				return
			}
			if certificate := issued(t, policy, issuer, request); !acceptedByOpenSSL(t, issuer.Certificate, certificate) {
				t.Error("OpenSSL refuses the certificate")
			}
		})
	}
}
