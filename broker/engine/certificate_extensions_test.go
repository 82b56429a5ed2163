// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// extension describes an extension of a certificate: "critical" or not, and its value in hexadecimal.
type extension struct {
	ID, Critical, Value string
}

func extensionsOf(certificate *x509.Certificate) []extension {
	var list []extension
	for _, e := range certificate.Extensions {
		critical := ""
		if e.Critical {
			critical = "critical"
		}
		list = append(list, extension{e.Id.String(), critical, hex.EncodeToString(e.Value)})
	}
	slices.SortFunc(list, func(a, b extension) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// bitsOf returns the bits of a public key, without the type and the length.
func bitsOf(t *testing.T, spki []byte) []byte {
	t.Helper()
	var key struct {
		Algorithm pkix.AlgorithmIdentifier
		PublicKey asn1.BitString
	}
	if _, err := asn1.Unmarshal(spki, &key); err != nil {
		t.Fatal(err)
	}
	return key.PublicKey.Bytes
}

func TestACertificateHasTheExtensionsOfTheProfileByteForByte(t *testing.T) {
	issuer := authority(t, "p-384", func(c *x509.Certificate) { c.SubjectKeyId = []byte{1, 2, 3, 4} })
	request := csr(t, "p-256", func(r *x509.CertificateRequest) {
		r.DNSNames = []string{"app.example.com"}
		r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}}
	})
	subjectKey := sha1.Sum(bitsOf(t, mustSPKI(t, request)))
	ski := extension{"2.5.29.14", "", "0414" + hex.EncodeToString(subjectKey[:])}
	aki := extension{"2.5.29.35", "", "3006800401020304"}
	notCA := extension{"2.5.29.19", "", "3000"}
	for sentence, c := range map[string]struct {
		lines  []string
		points []string
		want   []extension
	}{
		"the least": {nil, nil, []extension{ski, notCA, aki}},
		"as the profile Default": {
			[]string{"KeyUsage: [digitalSignature, keyEncipherment]", "ExtendedKeyUsage: [clientAuth]", "BasicConstraints: {CA: false}"}, nil,
			[]extension{ski, {"2.5.29.15", "critical", "030205a0"}, notCA, aki, {"2.5.29.37", "", "300a06082b06010505070302"}},
		},
		"all usages": {
			[]string{"KeyUsage: [digitalSignature, contentCommitment, keyEncipherment, dataEncipherment, keyAgreement, cRLSign, encipherOnly, decipherOnly]", "ExtendedKeyUsage: [serverAuth, clientAuth, codeSigning, emailProtection, timeStamping, OCSPSigning]"}, nil,
			[]extension{ski, {"2.5.29.15", "critical", "030307fb80"}, notCA, aki, {"2.5.29.37", "", "303c" + "06082b06010505070301" + "06082b06010505070302" + "06082b06010505070303" + "06082b06010505070304" + "06082b06010505070308" + "06082b06010505070309"}},
		},
		"an authority": {
			[]string{"KeyUsage: [keyCertSign, cRLSign]", "BasicConstraints: {CA: true}"}, nil,
			[]extension{ski, {"2.5.29.15", "critical", "03020106"}, {"2.5.29.19", "critical", "30030101ff"}, aki},
		},
		"an authority with none below it": {
			[]string{"KeyUsage: [keyCertSign]", "BasicConstraints: {CA: true, PathLenConstraint: 0}"}, nil,
			[]extension{ski, {"2.5.29.15", "critical", "03020204"}, {"2.5.29.19", "critical", "30060101ff020100"}, aki},
		},
		"an authority with some below it": {
			[]string{"KeyUsage: [keyCertSign]", "BasicConstraints: {CA: true, PathLenConstraint: 3}"}, nil,
			[]extension{ski, {"2.5.29.15", "critical", "03020204"}, {"2.5.29.19", "critical", "30060101ff020103"}, aki},
		},
		"CRL distribution points": {
			nil, []string{"http://a/c", "https://b/d"},
			[]extension{ski, notCA, {"2.5.29.31", "", "3025" + "3010a00ea00c860a" + hex.EncodeToString([]byte("http://a/c")) + "3011a00fa00d860b" + hex.EncodeToString([]byte("https://b/d"))}, aki},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			certificate := issued(t, permissive(t, c.lines...), issuer, engine.CertificateRequest{CSR: request, CRLDistributionPoints: c.points})
			got := extensionsOf(certificate)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("extensions (-want +got):\n%s", diff)
			}
			verifyByOpenSSL(t, issuer.Certificate, certificate)
		})
	}
}

func mustSPKI(t *testing.T, request []byte) []byte {
	t.Helper()
	return parseRequest(t, request).RawSubjectPublicKeyInfo
}

func TestKeyIdentifiersAreMadeWithTheDigestOfTheProfile(t *testing.T) {
	// An issuer whose certificate has no key identifier.
	issuer := authority(t, "p-256", nil)
	for i, e := range issuer.Certificate.Extensions {
		if e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 14}) {
			issuer.Certificate.Extensions = slices.Delete(issuer.Certificate.Extensions, i, i+1)
			issuer.Certificate.SubjectKeyId = nil
			break
		}
	}
	request := csr(t, "rsa-2048", nil)
	subject, own := bitsOf(t, mustSPKI(t, request)), bitsOf(t, issuer.Certificate.RawSubjectPublicKeyInfo)
	for algorithm, digest := range map[string]func([]byte) []byte{
		"":         func(b []byte) []byte { sum := sha1.Sum(b); return sum[:] },
		"sha-1":    func(b []byte) []byte { sum := sha1.Sum(b); return sum[:] },
		"sha-256":  func(b []byte) []byte { sum := sha256.Sum256(b); return sum[:] },
		"SHA-384":  func(b []byte) []byte { sum := sha512.Sum384(b); return sum[:] },
		"sha-512":  func(b []byte) []byte { sum := sha512.Sum512(b); return sum[:] },
		"sha3-256": func(b []byte) []byte { sum := sha3.Sum256(b); return sum[:] },
		"sha3-384": func(b []byte) []byte { sum := sha3.Sum384(b); return sum[:] },
		"sha3-512": func(b []byte) []byte { sum := sha3.Sum512(b); return sum[:] },
	} {
		t.Run(algorithm, func(t *testing.T) {
			var lines []string
			if algorithm != "" {
				lines = append(lines, "SKIHashAlg: "+algorithm)
			}
			certificate := issued(t, permissive(t, lines...), issuer, engine.CertificateRequest{CSR: request})
			if want := digest(subject)[:20]; !bytes.Equal(certificate.SubjectKeyId, want) {
				t.Errorf("subject key identifier %x, want %x", certificate.SubjectKeyId, want)
			}
			if want := digest(own)[:20]; !bytes.Equal(certificate.AuthorityKeyId, want) {
				t.Errorf("authority key identifier %x, want %x", certificate.AuthorityKeyId, want)
			}
		})
	}
}

func TestNamesAndNumbersOfACertificate(t *testing.T) {
	// Unusual types of strings, to see that the bytes do not change.
	odd := append([]byte{0x30, 0x0e, 0x31, 0x0c, 0x30, 0x0a, 0x06, 0x03, 0x55, 0x04, 0x03, 0x14, 0x03}, "a\xe4b"...)
	issuer := authority(t, "p-256", func(c *x509.Certificate) { c.RawSubject = odd })
	policy := permissive(t)
	request := csr(t, "p-256", func(r *x509.CertificateRequest) { r.RawSubject = odd })
	serials := map[string]bool{}
	for range 64 {
		certificate := issued(t, policy, issuer, engine.CertificateRequest{CSR: request})
		if !bytes.Equal(certificate.RawSubject, odd) || !bytes.Equal(certificate.RawIssuer, odd) {
			t.Fatalf("subject %x, issuer %x, want both %x", certificate.RawSubject, certificate.RawIssuer, odd)
		}
		// RFC 5280, section 4.1.2.2: positive and of at most 20 bytes.
		limit := new(big.Int).Lsh(big.NewInt(1), 159)
		if certificate.SerialNumber.Sign() <= 0 || certificate.SerialNumber.Cmp(limit) >= 0 || serials[certificate.SerialNumber.String()] {
			t.Fatalf("serial number %v", certificate.SerialNumber)
		}
		serials[certificate.SerialNumber.String()] = true
		if certificate.Version != 3 {
			t.Fatalf("version %d, want 3", certificate.Version)
		}
	}
	certificate := issued(t, policy, issuer, engine.CertificateRequest{CSR: request, Subject: `CN=x, O=Example\, Inc.,C=DE`})
	if got := runOpenSSL(t, certificatePEM(certificate), "x509", "-noout", "-subject", "-nameopt", "sname,sep_comma_plus"); strings.TrimSpace(got) != "subject=CN=x,O=Example, Inc.,C=DE" {
		t.Errorf("overridden subject: %s", got)
	}
}

func TestAlternativeNames(t *testing.T) {
	uri, err := url.Parse("spiffe://example.com/ns/shop/sa/web")
	if err != nil {
		t.Fatal(err)
	}
	all := func(r *x509.CertificateRequest) {
		r.DNSNames = []string{"web.shop.example.com", "*.shop.example.com"}
		r.IPAddresses = []net.IP{net.IPv4(10, 1, 2, 3), net.ParseIP("2001:db8::1")}
		r.URIs = []*url.URL{uri}
		r.EmailAddresses = []string{"ops@example.com"}
	}
	raw := func(value ...byte) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
		}
	}
	general := func(tag byte, content string) func(*x509.CertificateRequest) {
		name := append([]byte{0x80 | tag, byte(len(content))}, content...)
		return raw(append([]byte{0x30, byte(len(name))}, name...)...)
	}
	patterns := []string{
		"SubjectAltNames:", "  Rule: patterns", `  DNS: ["*.shop.example.com"]`, `  IP: [10.0.0.0/8, "2001:db8::/32"]`,
		`  URI: ["spiffe://example.com/ns/shop/*"]`, `  Email: ["*@example.com"]`,
	}
	copied := []string{"SubjectAltNames: {Rule: copy}"}
	issuer := authority(t, "p-256", nil)
	for sentence, c := range map[string]struct {
		lines  []string
		change func(*x509.CertificateRequest)
		// want is the output of openssl for the extension, or the error.
		want, refusal string
	}{
		"are left out where the profile has no rule": {nil, all, "", ""},
		"are left out by the rule deny":              {[]string{"SubjectAltNames: {Rule: deny}"}, all, "", ""},
		"are all there by the rule copy": {copied, all,
			"X509v3 Subject Alternative Name: \n    DNS:web.shop.example.com, DNS:*.shop.example.com, email:ops@example.com, IP Address:10.1.2.3, IP Address:2001:DB8:0:0:0:0:0:1, URI:spiffe://example.com/ns/shop/sa/web", ""},
		"are all there where each matches a pattern": {patterns, all,
			"X509v3 Subject Alternative Name: \n    DNS:web.shop.example.com, DNS:*.shop.example.com, email:ops@example.com, IP Address:10.1.2.3, IP Address:2001:DB8:0:0:0:0:0:1, URI:spiffe://example.com/ns/shop/sa/web", ""},
		"need not be there for patterns": {patterns, nil, "", ""},
		"have to be there where the profile requires them": {[]string{"SubjectAltNames: {Rule: copy, Required: true}"}, nil,
			"", "csr asks for no alternative name, expected an extension SubjectAltName with at least one name, because the profile requires it"},
		"have to be there for patterns that require them": {append(patterns[:len(patterns):len(patterns)], "  Required: true"), nil,
			"", "csr asks for no alternative name, expected an extension SubjectAltName with at least one name, because the profile requires it"},
		"are there that the profile requires": {[]string{"SubjectAltNames: {Rule: copy, Required: true}"}, func(r *x509.CertificateRequest) { r.DNSNames = []string{"a.example"} },
			"X509v3 Subject Alternative Name: \n    DNS:a.example", ""},
		"are critical without a subject": {copied, func(r *x509.CertificateRequest) {
			r.Subject, r.DNSNames = pkix.Name{}, []string{"a.example"}
		}, "X509v3 Subject Alternative Name: critical\n    DNS:a.example", ""},
		"of other kinds are there by the rule copy": {copied, raw(0x30, 0x05, 0x88, 0x03, 0x2a, 0x03, 0x04), "X509v3 Subject Alternative Name: \n    Registered ID:1.2.3.4", ""},

		"refuse a DNS name that no pattern allows": {patterns, func(r *x509.CertificateRequest) {
			r.DNSNames = []string{"web.shop.example.com", "bank.example.com"}
		}, "", `csr asks for the DNS name "bank.example.com", which no pattern of the profile allows`},
		"refuse an address that no pattern allows": {patterns, func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 1)} },
			"", `csr asks for the IP name "192.0.2.1", which no pattern of the profile allows`},
		"refuse a mail address that no pattern allows": {patterns, func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b.example.com"} },
			"", `csr asks for the mail name "a@b.example.com", which no pattern of the profile allows`},
		"refuse a URI that no pattern allows": {patterns, general(6, "spiffe://example.com/ns/shop/../bank"),
			"", `csr asks for the URI name "spiffe://example.com/ns/shop/../bank", which no pattern of the profile allows`},
		"refuse kinds that there are no patterns for": {patterns, raw(0x30, 0x05, 0x88, 0x03, 0x2a, 0x03, 0x04),
			"", `csr asks for an alternative name of the kind "registered", expected only names that a pattern of the profile allows`},
		"refuse a DNS name with a NUL":           {copied, general(2, "a.example\x00.evil"), "", `csr asks for the DNS name "a.example\x00.evil", which is not valid`},
		"refuse a DNS name with a star inside":   {copied, general(2, "a.*.example"), "", `csr asks for the DNS name "a.*.example", which is not valid`},
		"refuse an empty DNS name":               {copied, general(2, ""), "", `csr asks for the DNS name "", which is not valid`},
		"refuse a mail address without a domain": {copied, general(1, "root@"), "", `csr asks for the mail name "root@", which is not valid`},
		"refuse a URI without a scheme":          {copied, general(6, "/a"), "", `csr asks for the URI name "/a", which is not valid`},
		"refuse an extension without names":      {copied, raw(0x30, 0x00), "", "csr has an extension SubjectAltName without names, expected at least one or no such extension"},
		"refuse a kind that there is not":        {copied, raw(0x30, 0x03, 0x89, 0x01, 0x00), "", "csr has an alternative name of an unknown kind"},
	} {
		t.Run(sentence, func(t *testing.T) {
			policy, request := permissive(t, c.lines...), engine.CertificateRequest{CSR: csr(t, "p-256", func(r *x509.CertificateRequest) {
				r.Subject = pkix.Name{CommonName: "A web server"} // no verifier reads this as a host
				if c.change != nil {
					c.change(r)
				}
			})}
			if c.refusal != "" {
				refusedWith(t, policy, issuer, request, c.refusal)
				return
			}
			certificate := issued(t, policy, issuer, request)
			got := runOpenSSL(t, certificatePEM(certificate), "x509", "-noout", "-ext", "subjectAltName")
			got = strings.TrimSpace(strings.TrimPrefix(got, "No extensions in certificate"))
			if got != strings.TrimSpace(c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}
