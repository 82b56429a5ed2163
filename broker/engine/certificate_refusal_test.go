// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

func parseRequest(t testing.TB, text []byte) *x509.CertificateRequest {
	t.Helper()
	block, _ := pem.Decode(text)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// refusedWith checks that a certificate is not signed because of the request.
func refusedWith(t *testing.T, policy *profile.CertificatePolicy, issuer engine.Issuer, request engine.CertificateRequest, want string) {
	t.Helper()
	_, err := engine.IssueCertificate(policy, issuer, request, time.Now())
	var refusal *engine.InputError
	if !errors.As(err, &refusal) || err.Error() != want {
		t.Errorf("error of type %T\n got %v\nwant %s", err, err, want)
	}
}

// relabel changes the label of a PEM block.
func relabel(text []byte, label string) []byte {
	block, _ := pem.Decode(text)
	block.Type = label
	return pem.EncodeToMemory(block)
}

// damage changes bytes of a PEM block's content, counted from its end.
func damage(text []byte, fromEnd int) []byte {
	block, _ := pem.Decode(text)
	block.Bytes[len(block.Bytes)-fromEnd] ^= 0x55
	return pem.EncodeToMemory(block)
}

// replace changes bytes of a PEM block's content.
func replace(text []byte, before, after string) []byte {
	block, _ := pem.Decode(text)
	block.Bytes = bytes.ReplaceAll(block.Bytes, []byte(before), []byte(after))
	return pem.EncodeToMemory(block)
}

func TestARequestIsRefusedWhoseCSR(t *testing.T) {
	good := csr(t, "p-256", nil)
	issuer := authority(t, "p-384", nil)
	policy := certificateProfile(t, "Default")
	const keys = "RSA of 2048 to 4096 bits or ECDSA of 256 to 521 bits"
	for sentence, c := range map[string]struct {
		csr  []byte
		want string
	}{
		"is empty":                       {nil, "csr is empty, expected a certificate request in PEM"},
		"is no PEM":                      {[]byte("hello"), "csr has no complete PEM block, expected a certificate request in PEM"},
		"is DER":                         {parseRequest(t, good).Raw, "csr has no complete PEM block, expected a certificate request in PEM"},
		"is cut":                         {good[:len(good)/2], "csr has no complete PEM block, expected a certificate request in PEM"},
		"is a certificate":               {certificatePEM(issuer.Certificate), `csr has a PEM block "CERTIFICATE", expected "CERTIFICATE REQUEST"`},
		"is a private key":               {relabel(good, "PRIVATE KEY"), `csr has a PEM block "PRIVATE KEY", expected "CERTIFICATE REQUEST"`},
		"has content that is no request": {relabel(certificatePEM(issuer.Certificate), "CERTIFICATE REQUEST"), "csr is damaged: the content of its PEM block is not a request of PKCS #10"},
		"has an empty block":             {[]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"), "csr is damaged: the content of its PEM block is not a request of PKCS #10"},
		"has a changed signature":        {damage(good, 4), "csr has a signature that its own public key does not verify, expected a signature by the private key of the certificate"},
		"has a changed subject":          {replace(good, "app", "bpp"), "csr has a signature that its own public key does not verify, expected a signature by the private key of the certificate"},
		"is for a weak RSA key":          {csr(t, "rsa-1024", nil), "csr is for an RSA key of 1024 bits, expected what the profile allows for subjects: " + keys},
		"is for too large an RSA key":    {csr(t, "rsa-7680", nil), "csr is for an RSA key of 7680 bits, expected what the profile allows for subjects: " + keys},
		"is for a weak curve":            {csr(t, "p-224", nil), "csr is for an ECDSA key of 224 bits, expected what the profile allows for subjects: " + keys},
		"is for a kind of key not in it": {csr(t, "ed25519", nil), "csr is for an Ed25519 key, expected what the profile allows for subjects: " + keys},
		"is for a curve of its own":      {newCSR(t, "EC", "ec_paramgen_curve:secp256k1"), "csr is damaged or of a kind that is not supported: unsupported elliptic curve"},
		"is for a key that is no longer": {newCSR(t, "RSA-PSS", "rsa_keygen_bits:2048"), "csr is for a key of an algorithm that is not supported, expected " + keys},
		"is signed with MD5":             {newCSR(t, "RSA", "rsa_keygen_bits:2048", "-md5"), "csr is signed with MD5-RSA, which is not secure, expected SHA-256 or a longer digest"},
		"is signed with SHA-1":           {newCSR(t, "RSA", "rsa_keygen_bits:2048", "-sha1"), "csr is signed with SHA1-RSA, which the profile does not allow, expected SHA-256 or a longer digest"},
		"is signed with ECDSA and SHA-1": {newCSR(t, "EC", "ec_paramgen_curve:P-256", "-sha1"), "csr is signed with ECDSA-SHA1, which the profile does not allow, expected SHA-256 or a longer digest"},
		"is signed with another digest":  {newCSR(t, "RSA", "rsa_keygen_bits:2048", "-sha3-256"), "csr is signed with an algorithm that is not supported, expected RSA, ECDSA or Ed25519"},
		"names nobody": {csr(t, "p-256", func(r *x509.CertificateRequest) {
			r.Subject, r.DNSNames = pkix.Name{}, []string{"a.example"}
		}), "csr has an empty subject, expected a subject there or in the field subject: without a subject and without alternative names that the profile allows, the certificate would name nobody"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := engine.IssueCertificate(policy, issuer, engine.CertificateRequest{CSR: c.csr}, time.Now())
			var refusal *engine.InputError
			if !errors.As(err, &refusal) || err.Error() != c.want {
				t.Errorf("error of type %T\n got %v\nwant %s", err, err, c.want)
			}
		})
	}
}

func TestAByteOrderMarkHidesNeitherARequestNorAnIssuer(t *testing.T) {
	issuer, other := authority(t, "p-256", nil), authority(t, "p-256", nil)
	chain := append([]byte("\ufeff"), append(certificatePEM(issuer.Certificate), certificatePEM(other.Certificate)...)...)
	if found, err := engine.ParseCertificate("caCert", chain); err != nil || !found.Equal(issuer.Certificate) {
		t.Errorf("found another certificate than the first one, or the error %v", err)
	}
	issued(t, permissive(t), issuer, engine.CertificateRequest{CSR: append([]byte("\ufeff"), csr(t, "p-256", nil)...)})
}

func TestAProfileMayAllowRequestsThatAreSignedWithSHA1(t *testing.T) {
	policy, issuer := permissive(t, "AllowSHA1Requests: true"), authority(t, "p-256", nil)
	for _, key := range [][2]string{{"RSA", "rsa_keygen_bits:2048"}, {"EC", "ec_paramgen_curve:P-256"}} {
		request := newCSR(t, key[0], key[1], "-sha1")
		verifyByOpenSSL(t, issuer.Certificate, issued(t, policy, issuer, engine.CertificateRequest{CSR: request}))
		refusedWith(t, policy, issuer, engine.CertificateRequest{CSR: damage(request, 4)},
			"csr has a signature that its own public key does not verify, expected a signature by the private key of the certificate")
	}
	refusedWith(t, policy, issuer, engine.CertificateRequest{CSR: newCSR(t, "RSA", "rsa_keygen_bits:2048", "-md5")},
		"csr is signed with MD5-RSA, which is not secure, expected SHA-256 or a longer digest")
}

// newCSR makes a request that Go's library cannot make.
func newCSR(t *testing.T, algorithm, option string, digest ...string) []byte {
	t.Helper()
	key := runOpenSSL(t, nil, "genpkey", "-quiet", "-algorithm", algorithm, "-pkeyopt", option)
	return []byte(runOpenSSL(t, []byte(key), append([]string{"req", "-new", "-key", "/dev/stdin", "-subj", "/CN=app"}, digest...)...))
}

func TestARequestIsRefusedWhoseIssuer(t *testing.T) {
	request := engine.CertificateRequest{CSR: csr(t, "p-256", nil)}
	good := authority(t, "p-256", nil)
	ecdsa, authorities := permissive(t), permissive(t, "BasicConstraints: {CA: true}")
	for sentence, c := range map[string]struct {
		policy *profile.CertificatePolicy
		issuer engine.Issuer
		want   string
	}{
		"key belongs to another certificate": {ecdsa, engine.Issuer{Key: certificateKey(t, "p-256/other"), Certificate: good.Certificate},
			"caPrivateKey is not the key of the issuer's certificate, expected the private key that belongs to its public key"},
		"key is of another kind than its certificate": {ecdsa, engine.Issuer{Key: certificateKey(t, "rsa-2048"), Certificate: good.Certificate},
			"caPrivateKey is not the key of the issuer's certificate, expected the private key that belongs to its public key"},
		"key cannot sign as the profile wants": {ecdsa, authority(t, "rsa-2048", nil),
			"caPrivateKey is an RSA key, expected an ECDSA key, because the profile signs with ECDSA-SHA256"},
		"key is too short for the digest": {permissive(t, "SignAlg: rsa-pss", "HashAlg: sha-512"), authority(t, "rsa-1024", nil),
			"caPrivateKey is an RSA key of 1024 bits, expected at least 1034, because the profile signs with SHA512-RSAPSS"},
		"key is weaker than the profile allows": {certificateProfile(t, "Default"), good,
			"caPrivateKey is an ECDSA key of 256 bits, expected what the profile allows for issuers: ECDSA of 384 to 521 bits"},
		"key is of a kind that the profile does not allow": {certificateProfile(t, "Default"), authority(t, "rsa-2048", nil),
			"caPrivateKey is an RSA key, expected what the profile allows for issuers: ECDSA of 384 to 521 bits"},
		"certificate has expired": {ecdsa, authority(t, "p-256", func(c *x509.Certificate) {
			c.NotAfter = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(-5, 0, 0)
			c.NotBefore = c.NotAfter.AddDate(-1, 0, 0)
		}),
			"caCert expired at 2021-01-01T00:00:00Z, expected a certificate that is still valid"},
		"certificate is no authority's": {ecdsa, authority(t, "p-256", func(c *x509.Certificate) { c.IsCA = false }),
			"caCert is not the certificate of a certificate authority, expected BasicConstraints with CA:TRUE"},
		"certificate has no BasicConstraints": {ecdsa, authority(t, "p-256", func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = false, false }),
			"caCert is not the certificate of a certificate authority, expected BasicConstraints with CA:TRUE"},
		"certificate is for other things": {ecdsa, authority(t, "p-256", func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign }),
			"caCert is not for signing certificates, expected KeyUsage with keyCertSign, or no KeyUsage"},
		"certificate has KeyUsage without a use": {ecdsa, authority(t, "p-256", func(c *x509.Certificate) {
			c.KeyUsage = 0
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 15}, Critical: true, Value: []byte{asn1.TagBitString, 1, 0}}}
		}),
			"caCert is not for signing certificates, expected KeyUsage with keyCertSign, or no KeyUsage"},
		"certificate allows no authority below": {authorities, authority(t, "p-256", func(c *x509.Certificate) { c.MaxPathLenZero = true }),
			"caCert allows no certificate authority below it (path length 0), but the profile makes certificate authorities"},
		"certificate has no name": {ecdsa, authority(t, "p-256", func(c *x509.Certificate) { c.Subject = pkix.Name{} }),
			"caCert has an empty subject, expected the name of an issuer"},
	} {
		t.Run(sentence, func(t *testing.T) {
			refusedWith(t, c.policy, c.issuer, request, c.want)

			// The caller cannot correct the same problem if the key is in the broker.
			byReference := c.issuer
			byReference.KeyID = "ca"
			want := strings.NewReplacer("caPrivateKey ", `the issuer's key "ca" `, "caCert ", `the certificate of the issuer's key "ca" `).Replace(c.want)
			_, err := engine.IssueCertificate(c.policy, byReference, request, time.Now())
			var precondition *engine.PreconditionError
			if !errors.As(err, &precondition) || err.Error() != want {
				t.Errorf("by reference: error of type %T\n got %v\nwant %s", err, err, want)
			}
		})
	}
}

func TestAnIssuerMaySignThatHas(t *testing.T) {
	for sentence, change := range map[string]func(*x509.Certificate){
		"no KeyUsage":            func(c *x509.Certificate) { c.KeyUsage = 0 },
		"a path length of zero":  func(c *x509.Certificate) { c.MaxPathLenZero = true },
		"a path length of one":   func(c *x509.Certificate) { c.MaxPathLen = 1 },
		"an hour to live":        func(c *x509.Certificate) { c.NotAfter = time.Now().Add(time.Hour) },
		"lived for some seconds": func(c *x509.Certificate) { c.NotBefore = time.Now().Add(-3 * time.Second) },
	} {
		t.Run(sentence, func(t *testing.T) {
			issuer := authority(t, "p-256", change)
			certificate := issued(t, permissive(t), issuer, engine.CertificateRequest{CSR: csr(t, "p-256", nil)})
			if issuer.Certificate.KeyUsage != 0 { // OpenSSL's strict rules demand this
				verifyByOpenSSL(t, issuer.Certificate, certificate)
			}
			if certificate.NotBefore.Before(issuer.Certificate.NotBefore) || certificate.NotAfter.After(issuer.Certificate.NotAfter) {
				t.Errorf("the certificate is valid from %s to %s, its issuer from %s to %s", certificate.NotBefore, certificate.NotAfter, issuer.Certificate.NotBefore, issuer.Certificate.NotAfter)
			}
		})
	}
}

func TestARequestIsRefusedWithTheFields(t *testing.T) {
	good := engine.CertificateRequest{CSR: csr(t, "p-256", nil)}
	points := func(list ...string) func(*engine.CertificateRequest) {
		return func(r *engine.CertificateRequest) { r.CRLDistributionPoints = list }
	}
	const noURL = ` is not a URL of http or https in ASCII, such as "http://crl.example.com/ca.crl"`
	for sentence, c := range map[string]struct {
		change func(*engine.CertificateRequest)
		want   string
	}{
		"a subject that is none":           {func(r *engine.CertificateRequest) { r.Subject = "app" }, `subject cannot be read: component 1 has no "=", expected an attribute such as "CN=api.example.com"; a comma inside a value is written "\,"`},
		"a subject of nothing":             {func(r *engine.CertificateRequest) { r.Subject = " , " }, `subject cannot be read: names nothing, expected attributes such as "CN=api.example.com,O=Example"`},
		"a distribution point of LDAP":     {points("http://a/b", "ldap://a/b"), "crlDistributionPoints[1]" + noURL},
		"an empty distribution point":      {points(""), "crlDistributionPoints[0]" + noURL},
		"a distribution point as a path":   {points("/ca.crl"), "crlDistributionPoints[0]" + noURL},
		"a distribution point of no host":  {points("http:///ca.crl"), "crlDistributionPoints[0]" + noURL},
		"a distribution point with spaces": {points("http://a/b c"), "crlDistributionPoints[0]" + noURL},
		"a distribution point in Unicode":  {points("http://ä/b"), "crlDistributionPoints[0]" + noURL},
		"a distribution point too long":    {points("http://a/" + strings.Repeat("b", 2040)), "crlDistributionPoints[0] has 2049 bytes, expected at most 2048"},
		"too many distribution points":     {points(strings.Fields(strings.Repeat("http://a ", 17))...), "crlDistributionPoints has 17 entries, expected at most 16"},
	} {
		t.Run(sentence, func(t *testing.T) {
			request := good
			c.change(&request)
			refusedWith(t, permissive(t), authority(t, "p-256", nil), request, c.want)
		})
	}
	t.Run("at their limits they are accepted", func(t *testing.T) {
		request := good
		for i := range 16 {
			point := fmt.Sprintf("https://crl%d.example.com/", i)
			request.CRLDistributionPoints = append(request.CRLDistributionPoints, point+strings.Repeat("x", 2048-len(point)))
		}
		certificate := issued(t, permissive(t), authority(t, "p-256", nil), request)
		if len(certificate.CRLDistributionPoints) != 16 || certificate.CRLDistributionPoints[15] != request.CRLDistributionPoints[15] {
			t.Errorf("distribution points %q", certificate.CRLDistributionPoints)
		}
	})
}

func TestDistributionPointsAreThoseThatTheProfileAllows(t *testing.T) {
	const rule = "CRLDistributionPoints: {Rule: patterns, URI: ['http://crl.example.com/*', 'https://*.example.org/ca.crl']}"
	for sentence, c := range map[string]struct {
		line   string
		points []string
		want   string // empty if the certificate has them
	}{
		"any where the profile has no rule":        {"", []string{"http://evil.example.net/ca.crl"}, ""},
		"any by the rule any":                      {"CRLDistributionPoints: {Rule: any}", []string{"http://evil.example.net/ca.crl"}, ""},
		"none by the rule deny":                    {"CRLDistributionPoints: {Rule: deny}", nil, ""},
		"one by the rule deny":                     {"CRLDistributionPoints: {Rule: deny}", []string{"http://crl.example.com/ca.crl"}, "crlDistributionPoints is not empty, expected no CRL distribution points, because the profile allows none"},
		"none where there are patterns":            {rule, nil, ""},
		"those that match a pattern":               {rule, []string{"http://crl.example.com/a/b.crl", "HTTPS://eu.EXAMPLE.org/ca.crl"}, ""},
		"one that matches none":                    {rule, []string{"http://crl.example.com/ca.crl", "http://crl.example.net/ca.crl"}, `crlDistributionPoints[1] is "http://crl.example.net/ca.crl", which no pattern of the profile allows`},
		"one with another port":                    {rule, []string{"http://crl.example.com:8080/ca.crl"}, `crlDistributionPoints[0] is "http://crl.example.com:8080/ca.crl", which no pattern of the profile allows`},
		"one whose host is a user of another host": {rule, []string{"http://crl.example.com@evil.example.net/ca.crl"}, `crlDistributionPoints[0] is "http://crl.example.com@evil.example.net/ca.crl", which no pattern of the profile allows`},
		"one with a way up":                        {rule, []string{"http://crl.example.com/../ca.crl"}, `crlDistributionPoints[0] is "http://crl.example.com/../ca.crl", which no pattern of the profile allows`},
	} {
		t.Run(sentence, func(t *testing.T) {
			policy, issuer := permissive(t, c.line), authority(t, "p-256", nil)
			request := engine.CertificateRequest{CSR: csr(t, "p-256", nil), CRLDistributionPoints: c.points}
			if c.want != "" {
				refusedWith(t, policy, issuer, request, c.want)
				return
			}
			if got := issued(t, policy, issuer, request).CRLDistributionPoints; !slices.Equal(got, c.points) {
				t.Errorf("distribution points %q, want %q", got, c.points)
			}
		})
	}
}
