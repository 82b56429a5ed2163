// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/smallstep/pkcs7"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// cmsCases are the algorithms that CMS has, with a key and OpenSSL's digest.
var cmsCases = map[string]struct {
	lines  []string
	key    string
	digest string
}{
	"RSA with SHA-256":            {[]string{"SignAlg: rsa", "HashAlg: sha-256"}, "rsa-2048", "sha256"},
	"RSA with SHA-384":            {[]string{"SignAlg: rsa", "HashAlg: sha-384"}, "rsa-2048", "sha384"},
	"RSA with SHA-512":            {[]string{"SignAlg: rsa", "HashAlg: sha-512"}, "rsa-3072", "sha512"},
	"ECDSA on P-256 with SHA-256": {[]string{"SignAlg: ecdsa", "HashAlg: sha-256"}, "p-256", "sha256"},
	"ECDSA on P-521 with SHA-384": {[]string{"SignAlg: ecdsa", "HashAlg: sha-384"}, "p-521", "sha384"},
	"ECDSA on P-384 with SHA-512": {[]string{"SignAlg: ecdsa", "HashAlg: sha-512"}, "p-384", "sha512"},
}

func TestOpenSSLVerifiesCMSThatWeSign(t *testing.T) {
	for name, c := range cmsCases {
		t.Run(name, func(t *testing.T) {
			certificate := signerCertificate(t, c.key, nil)
			policy := signaturePolicy(t, append(c.lines, "SignatureFormat: CMS")...)
			signature, err := engine.Sign(policy, profile.SignatureCMS, signers(t, c.key, certificate), message)
			if err != nil {
				t.Fatal(err)
			}
			out := runOpenSSL(t, nil, "cms", "-verify", "-inform", "DER", "-in", saved(t, signature), "-binary", "-content", saved(t, message),
				"-CAfile", saved(t, certificatePEM(certificate)), "-purpose", "any", "-out", os.DevNull)
			if !strings.Contains(out, "CMS Verification successful") && !strings.Contains(out, "Verification successful") {
				t.Error(out)
			}
			valid, err := engine.Verify(policy, profile.SignatureCMS, verifiers(t, c.key), message, signature)
			if err != nil || !valid {
				t.Errorf("to us it is %v, %v", valid, err)
			}
		})
	}
}

func TestOpenSSLFindsThePathThroughTheIssuersOfTheSigner(t *testing.T) {
	issue := func(serial int64, key, issuer string, parent *x509.Certificate) *x509.Certificate {
		t.Helper()
		template := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: fmt.Sprint("certificate ", serial)},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: serial < 3, BasicConstraintsValid: true,
		}
		if parent == nil {
			parent = template
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, signatureKey(t, key).Public(), signatureKey(t, issuer))
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	root := issue(1, "p-384", "p-384", nil)
	middle := issue(2, "p-256/middle", "p-384", root)
	leaf := issue(3, "p-256", "p-256/middle", middle)
	policy := signaturePolicy(t, "SignAlg: ecdsa", "HashAlg: sha-256")
	signature, err := engine.Sign(policy, profile.SignatureCMS, signers(t, "p-256", leaf, middle), message)
	if err != nil {
		t.Fatal(err)
	}
	runOpenSSL(t, nil, "cms", "-verify", "-inform", "DER", "-in", saved(t, signature), "-binary", "-content", saved(t, message),
		"-CAfile", saved(t, certificatePEM(root)), "-purpose", "any", "-out", os.DevNull)
	valid, err := engine.Verify(policy, profile.SignatureCMS, verifiers(t, "p-256"), message, signature)
	if err != nil || !valid {
		t.Errorf("to us it is %v, %v", valid, err)
	}
}

// signByOpenSSL makes a CMS signature with OpenSSL.
func signByOpenSSL(t *testing.T, key, digest string, certificate *x509.Certificate, options ...string) []byte {
	t.Helper()
	out := saved(t, nil)
	runOpenSSL(t, nil, append([]string{"cms", "-sign", "-in", saved(t, message), "-binary", "-outform", "DER", "-out", out, "-md", digest,
		"-signer", saved(t, certificatePEM(certificate)), "-inkey", savedKey(t, signatureKey(t, key))}, options...)...)
	signature, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

func TestWeVerifyCMSThatOpenSSLSigns(t *testing.T) {
	for name, c := range cmsCases {
		t.Run(name, func(t *testing.T) {
			certificate := signerCertificate(t, c.key, nil)
			policy := signaturePolicy(t, c.lines...)
			for _, options := range [][]string{nil, {"-nocerts"}, {"-nosmimecap"}} {
				signature := signByOpenSSL(t, c.key, c.digest, certificate, options...)
				check := func(keys []engine.VerifyingKey, input []byte, want bool) {
					t.Helper()
					valid, err := engine.Verify(policy, profile.SignatureCMS, keys, input, signature)
					if err != nil || valid != want {
						t.Errorf("%v: %v, %v, want %v", options, valid, err, want)
					}
				}
				check(verifiers(t, c.key, certificate), message, true)
				check(verifiers(t, c.key, certificate), []byte("another message"), false)
				check(verifiers(t, c.key+"/other", certificate), message, false)
			}
		})
	}
}

func TestARenewedCertificateDoesNotMakeOldSignaturesInvalid(t *testing.T) {
	policy := signaturePolicy(t, "SignAlg: ecdsa", "HashAlg: sha-256")
	before, after := signerCertificate(t, "p-256", nil), signerCertificate(t, "p-256", func(c *x509.Certificate) { c.SerialNumber = big.NewInt(2) })
	signature, err := engine.Sign(policy, profile.SignatureCMS, signers(t, "p-256", before), message)
	if err != nil {
		t.Fatal(err)
	}
	valid, err := engine.Verify(policy, profile.SignatureCMS, verifiers(t, "p-256", after), message, signature)
	if err != nil || !valid {
		t.Errorf("%v, %v", valid, err)
	}
}

func TestCMSNeedsACertificateThatVerifiersWouldAccept(t *testing.T) {
	policy := signaturePolicy(t, "SignAlg: ecdsa", "HashAlg: sha-256")
	date := func(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		certificates []*x509.Certificate
		want         string
	}{
		"none": {nil, "format CMS needs the certificate of the signer, which only a key in the key directory can have; this key has none"},
		"an expired one": {
			[]*x509.Certificate{signerCertificate(t, "p-256", func(c *x509.Certificate) { c.NotBefore, c.NotAfter = date(1), date(2) })},
			"the certificate of the key expired at 2026-01-02T00:00:00Z",
		},
		"one of the future": {
			[]*x509.Certificate{signerCertificate(t, "p-256", func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = date(1).AddDate(100, 0, 0), date(2).AddDate(100, 0, 0)
			})},
			"the certificate of the key is not valid before 2126-01-01T00:00:00Z",
		},
		"one for something else": {
			[]*x509.Certificate{signerCertificate(t, "p-256", func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyAgreement })},
			"the certificate of the key is not for signatures: its key usage has neither digitalSignature nor contentCommitment",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := engine.Sign(policy, profile.SignatureCMS, signers(t, "p-256", c.certificates...), message)
			var precondition *engine.PreconditionError
			if !errors.As(err, &precondition) || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestWhatIsNoDetachedCMSOfTheAlgorithmIsRefused(t *testing.T) {
	certificate := signerCertificate(t, "p-256", nil)
	policy := signaturePolicy(t, "SignAlg: ecdsa", "HashAlg: sha-256")
	good, err := engine.Sign(policy, profile.SignatureCMS, signers(t, "p-256", certificate), message)
	if err != nil {
		t.Fatal(err)
	}
	untimely := signerCertificate(t, "p-256", func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	})
	two, err := pkcs7.NewSignedData(message)
	if err != nil {
		t.Fatal(err)
	}
	two.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
	for range 2 {
		if err := two.AddSigner(certificate, signatureKey(t, "p-256"), pkcs7.SignerInfoConfig{}); err != nil {
			t.Fatal(err)
		}
	}
	two.Detach()
	ofTwo, err := two.Finish()
	if err != nil {
		t.Fatal(err)
	}
	const noDER = "signature is not DER, expected a detached CMS SignedData"
	const otherAlgorithms = "signature names other algorithms than ecdsa with SHA-256, which the profile prescribes"
	for name, c := range map[string]struct {
		signature []byte
		want      string
	}{
		"nothing":                          {nil, noDER},
		"text":                             {[]byte("signature"), noDER},
		"something behind":                 {append(bytes.Clone(good), 0), noDER},
		"the half":                         {good[:len(good)/2], noDER},
		"lengths without an end (BER)":     {append([]byte{0x30, 0x80}, good[4:]...), noDER},
		"sequences without an end":         {bytes.Repeat([]byte{0x30, 0x80}, 30000), noDER},
		"sequences nested deep":            {nested(100), noDER},
		"DER of something else":            {certificate.Raw, "signature is not a CMS SignedData with a signer named by issuer and serial number"},
		"the content inside":               {signByOpenSSL(t, "p-256", "sha256", certificate, "-nodetach"), "signature has its content inside, expected a detached CMS SignedData"},
		"another digest":                   {signByOpenSSL(t, "p-256", "sha384", certificate), otherAlgorithms},
		"another algorithm":                {signByOpenSSL(t, "rsa-2048", "sha256", signerCertificate(t, "rsa-2048", nil)), otherAlgorithms},
		"no signed attributes":             {signByOpenSSL(t, "p-256", "sha256", certificate, "-noattr"), "signature has no signed attributes, or their content type is not data"},
		"two signers":                      {ofTwo, "signature has 2 signers, expected one"},
		"no certificate anywhere":          {signByOpenSSL(t, "p-256", "sha256", certificate, "-nocerts"), "signature has no certificate of its signer, and the key has none with that issuer and serial number"},
		"a signer whose time had run out":  {signByOpenSSL(t, "p-256", "sha256", untimely), "was signed at"},
		"a signer named by its key's name": {signByOpenSSL(t, "p-256", "sha256", withKeyIdentifier(t), "-keyid"), "signature is not a CMS SignedData with a signer named by issuer and serial number"},
	} {
		t.Run(name, func(t *testing.T) {
			valid, err := engine.Verify(policy, profile.SignatureCMS, verifiers(t, "p-256"), message, c.signature)
			var input *engine.InputError
			if valid || !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v, want %s", valid, err, c.want)
			}
		})
	}
}

// nested returns sequences in one another.
func nested(depth int) []byte {
	data := []byte{5, 0}
	for range depth {
		data, _ = asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: data})
	}
	return data
}

func withKeyIdentifier(t *testing.T) *x509.Certificate {
	return signerCertificate(t, "p-256", func(c *x509.Certificate) { c.SubjectKeyId = []byte{1, 2, 3, 4} })
}

func TestAChangedByteNeverMakesAnotherValidCMS(t *testing.T) {
	policy := signaturePolicy(t, "SignAlg: ecdsa", "HashAlg: sha-256")
	certificate := signerCertificate(t, "p-256", nil)
	good, err := engine.Sign(policy, profile.SignatureCMS, signers(t, "p-256", certificate), message)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x41
		if valid, _ := engine.Verify(policy, profile.SignatureCMS, verifiers(t, "p-256"), []byte("another message"), bad); valid {
			t.Fatalf("with byte %d changed the signature is valid for another message", i)
		}
	}
}
