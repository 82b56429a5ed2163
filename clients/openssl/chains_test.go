// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// signed is a certificate with a key of any kind.
type signed struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// change changes the template of a certificate.
type change = func(*x509.Certificate)

// sign makes a certificate that issuer signs, or that signs itself.
func sign(t *testing.T, issuer *signed, key crypto.Signer, changes ...change) *signed {
	t.Helper()
	number := serial.Add(1)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: fmt.Sprint("certificate ", number)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	for _, change := range changes {
		change(template)
	}
	if issuer == nil {
		issuer = &signed{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.certificate, key.Public(), issuer.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signed{certificate, key}
}

func ecKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t *testing.T, bits int) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func asAuthority(c *x509.Certificate) {
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
}

func asServer(c *x509.Certificate) {
	c.DNSNames, c.KeyUsage, c.ExtKeyUsage = []string{"localhost"}, x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

func named(names ...string) change { return func(c *x509.Certificate) { c.DNSNames = names } }

func usedFor(usage ...x509.ExtKeyUsage) change {
	return func(c *x509.Certificate) { c.ExtKeyUsage = usage }
}

func keyUsedFor(usage x509.KeyUsage) change { return func(c *x509.Certificate) { c.KeyUsage = usage } }

func expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }

// judged is a server whose certificate both implementations judge.
type judged struct {
	root  *signed
	chain []*signed // as the server sends it, its own certificate first
	host  string
	// goRefuses and opensslRefuses say who refuses it.
	goRefuses, opensslRefuses bool
}

// The README says where both differ.
func TestCertificatesAreJudgedAsCryptoTLSJudgesThemButForWhatTheReadmeSays(t *testing.T) {
	p256 := func() crypto.Signer { return ecKey(t, elliptic.P256()) }
	root := sign(t, nil, p256(), asAuthority)
	cases := map[string]judged{}
	// one has a certificate of the root.
	one := func(name, host string, goRefuses, opensslRefuses bool, changes ...change) {
		leaf := sign(t, root, p256(), append([]change{asServer}, changes...)...)
		cases[name] = judged{root, []*signed{leaf}, host, goRefuses, opensslRefuses}
	}
	// two has a certificate of an authority that the root has signed.
	two := func(name, host string, goRefuses, opensslRefuses bool, above change, changes ...change) {
		between := sign(t, root, p256(), asAuthority, above)
		leaf := sign(t, between, p256(), append([]change{asServer}, changes...)...)
		cases[name] = judged{root, []*signed{leaf, between}, host, goRefuses, opensslRefuses}
	}
	const accepted, refused = false, true
	for name, key := range map[string]crypto.Signer{"P-384": ecKey(t, elliptic.P384()), "P-521": ecKey(t, elliptic.P521()), "RSA with 2048 bits": rsaKey(t, 2048)} {
		cases["a key of "+name] = judged{root: root, chain: []*signed{sign(t, root, key, asServer)}, host: "localhost"}
	}
	cases["a key of RSA with 1024 bits"] = judged{root, []*signed{sign(t, root, rsaKey(t, 1024), asServer)}, "localhost", accepted, refused}
	rsaRoot := sign(t, nil, rsaKey(t, 2048), asAuthority)
	cases["a signature by RSA-PSS"] = judged{root: rsaRoot, host: "localhost", chain: []*signed{
		sign(t, rsaRoot, p256(), asServer, func(c *x509.Certificate) { c.SignatureAlgorithm = x509.SHA256WithRSAPSS }),
	}}
	cases["a signature with SHA-1"] = judged{rsaRoot, []*signed{
		sign(t, rsaRoot, p256(), asServer, func(c *x509.Certificate) { c.SignatureAlgorithm = x509.SHA1WithRSA }),
	}, "localhost", refused, refused}

	one("a wildcard for a part of a label", "www.example.com", refused, refused, named("w*.example.com"))
	one("a wildcard that is not first", "a.b.example.com", refused, refused, named("a.*.example.com"))
	one("a wildcard alone", "localhost", refused, refused, named("*"))
	one("a wildcard below a top-level domain", "localhost.com", accepted, refused, named("*.com"))
	one("a wildcard for an international name", "xn--mnchen-3ya.example.com", accepted, accepted, named("*.example.com"))
	one("a wildcard for a name with an underscore", "a_b.example.com", accepted, refused, named("*.example.com"))
	one("a name with an underscore", "a_b.example.com", accepted, accepted, named("a_b.example.com"))
	one("a name in upper case", "localhost", accepted, accepted, named("LOCALHOST"))
	one("a name with a dot at its end", "localhost", refused, refused, named("localhost."))
	one("a name with a dot at its beginning", "a.example.com", refused, refused, named(".example.com"))
	one("an address as a name", "127.0.0.1", refused, refused, named("127.0.0.1"))
	one("an address of IPv6", "::1", accepted, accepted, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv6loopback} })
	one("no usage", "localhost", accepted, accepted, usedFor())
	one("any usage", "localhost", accepted, refused, usedFor(x509.ExtKeyUsageAny))
	one("a usage for code", "localhost", refused, refused, usedFor(x509.ExtKeyUsageCodeSigning))
	one("no usage of the key", "localhost", accepted, accepted, keyUsedFor(0))
	one("a key for certificates alone", "localhost", accepted, refused, keyUsedFor(x509.KeyUsageCertSign))
	one("an extension that is critical and unknown", "localhost", refused, refused, func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}}
	})

	two("an authority between", "localhost", accepted, accepted, asAuthority)
	two("an authority between that is none", "localhost", refused, refused, func(c *x509.Certificate) { c.IsCA = false })
	two("an authority between whose key is not for certificates", "localhost", refused, refused, keyUsedFor(x509.KeyUsageCRLSign))
	two("an authority between that has expired", "localhost", refused, refused, expired)
	two("an authority between for clients", "localhost", refused, refused, usedFor(x509.ExtKeyUsageClientAuth))
	two("an authority for other names", "localhost", refused, refused, func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"example.com"} })
	two("an authority for the name and another one", "a.example.com", refused, refused, func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"example.com"} }, named("a.example.com", "other"))
	two("an authority not for the name", "localhost", refused, refused, func(c *x509.Certificate) { c.ExcludedDNSDomains = []string{"localhost"} })
	two("an authority not for a name of the wildcard", "a.example.com", refused, accepted, func(c *x509.Certificate) { c.ExcludedDNSDomains = []string{"a.example.com"} }, named("*.example.com"))

	between := sign(t, root, p256(), asAuthority)
	leaf := sign(t, between, p256(), asServer)
	stranger := sign(t, nil, p256(), asAuthority)
	cases["an authority that is missing"] = judged{root, []*signed{leaf}, "localhost", refused, refused}
	cases["authorities in another order, with a stranger"] = judged{root, []*signed{leaf, stranger, root, between}, "localhost", accepted, accepted}
	cases["an authority that is trusted without its own"] = judged{between, []*signed{leaf}, "localhost", accepted, accepted}
	last := sign(t, root, p256(), asAuthority, func(c *x509.Certificate) { c.MaxPathLenZero = true })
	beyond := sign(t, last, p256(), asAuthority)
	cases["more authorities than one of them allows"] = judged{root, []*signed{sign(t, beyond, p256(), asServer), beyond, last}, "localhost", refused, refused}
	old := sign(t, nil, p256(), asAuthority, expired)
	cases["a root that has expired"] = judged{old, []*signed{sign(t, old, p256(), asServer)}, "localhost", refused, refused}

	key, twice := p256(), func(c *x509.Certificate) { asAuthority(c); c.Subject.CommonName = "signed by two" }
	ofStranger, ofRoot := sign(t, stranger, key, twice), sign(t, root, key, twice)
	leaf = sign(t, ofRoot, p256(), asServer)
	cases["an authority of two roots"] = judged{root, []*signed{leaf, ofRoot, ofStranger}, "localhost", accepted, accepted}
	cases["an authority of two roots, the other one first"] = judged{root, []*signed{leaf, ofStranger, ofRoot}, "localhost", accepted, refused}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test.check(t) })
	}
}

func (j judged) check(t *testing.T) {
	certificate := tls.Certificate{PrivateKey: j.chain[0].key}
	for _, part := range j.chain {
		certificate.Certificate = append(certificate.Certificate, part.certificate.Raw)
	}
	address := serve(t, &tls.Config{Certificates: []tls.Certificate{certificate}}, echo)
	withEachProvider(t, openssl.Config{RootCAs: encodePEM("CERTIFICATE", j.root.certificate.Raw)}, func(t *testing.T, p provider) {
		refuses := j.goRefuses
		if p.isOpenSSL {
			refuses = j.opensslRefuses
		}
		err := roundTrip(p.dial(t, address, j.host), "hello")
		if (err != nil) != refuses {
			t.Errorf("found %v, expected that it is refused: %t", err, refuses)
		}
		if err != nil && !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%v; expected that the certificate is the cause", err)
		}
	})
}
