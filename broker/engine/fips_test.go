// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// strictly compiles the profile P with this API for a broker that requires FIPS
// 140-3.
func strictly(t *testing.T, api string) *profile.Compiled {
	t.Helper()
	set, problems := profile.Compile(profile.FileName, []byte("- Name: P\n  API: {"+api+"}\n"), profile.RequireFIPS())
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, _ := set.Lookup("P")
	return p
}

const strictCertificates = "SignCertificate: {SignAlg: rsa, HashAlg: sha-256, SKIHashAlg: sha-256, Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}, " +
	"KeyConstraints: {Issuer: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}}, Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}, ECDSA: {MinKeySize: 256, MaxKeySize: 384}}}}"

// openssl makes a file with OpenSSL, because Go's library cannot make it.
func openssl(t *testing.T, args ...string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out.pem")
	command := exec.CommandContext(t.Context(), "openssl", append(args, "-out", file)...)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("openssl: %v\n%s", err, output)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// unusualKey makes an RSA key of 2048 bits with options of OpenSSL.
func unusualKey(t *testing.T, options ...string) *rsa.PrivateKey {
	t.Helper()
	args := []string{"genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"}
	for _, option := range options {
		args = append(args, "-pkeyopt", option)
	}
	block, _ := pem.Decode(openssl(t, args...))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*rsa.PrivateKey)
}

func oddKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2049)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestKeysThatFIPS186DoesNotApproveAreRefusedWhereItIsRequired(t *testing.T) {
	const api = "SignData: {SignAlg: rsa, HashAlg: sha-256}"
	strict, usual := strictly(t, api).Signature(), signaturePolicy(t, "SignAlg: rsa", "HashAlg: sha-256")
	const since = ", because this broker requires keys that FIPS 186-5 approves"
	for name, c := range map[string]struct {
		key      *rsa.PrivateKey
		want     string
		verifies bool
	}{
		"a small exponent":    {unusualKey(t, "rsa_keygen_pubexp:3"), "with the public exponent 3, expected more than 65536", false},
		"an odd size":         {oddKey(t), "of 2049 bits, expected an even number", false},
		"three primes":        {unusualKey(t, "rsa_keygen_primes:3"), "of 3 primes, expected 2", true},
		"nothing out of line": {unusualKey(t), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			signing := []engine.SigningKey{{Signer: c.key}}
			verifying := []engine.VerifyingKey{{Public: c.key.Public()}}
			signature, err := engine.Sign(usual, profile.SignatureRAW, signing, message)
			if err != nil {
				t.Fatalf("where it is not required: %v", err)
			}
			want := ""
			if c.want != "" {
				want = "keySource.single is an RSA key " + c.want + since
			}
			if _, err := engine.Sign(strict, profile.SignatureRAW, signing, message); sentence(err) != want {
				t.Errorf("to sign: %v, want %q", err, want)
			}
			if c.verifies {
				want = ""
			}
			if valid, err := engine.Verify(strict, profile.SignatureRAW, verifying, message, signature); sentence(err) != want || valid != c.verifies {
				t.Errorf("to verify: %v %v, want %q", valid, err, want)
			}
		})
	}
}

func sentence(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRequestsThatFIPSDoesNotApproveAreRefusedWhereItIsRequired(t *testing.T) {
	issuer := authority(t, "rsa-2048", nil)
	policy := strictly(t, strictCertificates).Certificate()
	request := func(args ...string) []byte {
		return openssl(t, append([]string{"req", "-new", "-nodes", "-subj", "/CN=app", "-keyout", filepath.Join(t.TempDir(), "key.pem")}, args...)...)
	}
	for name, c := range map[string]struct {
		csr  []byte
		want string
	}{
		"signed with SHA-1":       {request("-newkey", "rsa:2048", "-sha1"), "csr is signed with SHA1-RSA, which FIPS 140-3 does not approve, and this broker requires FIPS 140-3, expected SHA-256 or a longer digest"},
		"ECDSA with SHA-1":        {request("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-sha1"), "csr is signed with ECDSA-SHA1, which FIPS 140-3 does not approve, and this broker requires FIPS 140-3, expected SHA-256 or a longer digest"},
		"for an unusual key":      {request("-newkey", "rsa", "-pkeyopt", "rsa_keygen_bits:2048", "-pkeyopt", "rsa_keygen_pubexp:17"), "csr is for an RSA key with the public exponent 17, expected more than 65536, because this broker requires keys that FIPS 186-5 approves"},
		"as others make requests": {request("-newkey", "rsa:2048"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := engine.IssueCertificate(policy, issuer, engine.CertificateRequest{CSR: c.csr}, time.Now()); sentence(err) != c.want {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	unusual := issuer
	key := unusualKey(t, "rsa_keygen_pubexp:3")
	unusual.Key, unusual.Certificate = key, new(*issuer.Certificate)
	unusual.Certificate.PublicKey = &key.PublicKey
	_, err := engine.IssueCertificate(policy, unusual, engine.CertificateRequest{CSR: csr(t, "p-256", nil)}, time.Now())
	if err == nil || !strings.HasPrefix(err.Error(), "caPrivateKey is an RSA key with the public exponent 3") {
		t.Errorf("an unusual issuer: %v", err)
	}
}

func TestTheStatusSaysWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		status engine.FIPSStatus
		want   string
	}{
		"nothing":              {engine.FIPSStatus{Module: "v1.0.0", Mode: "on"}, ""},
		"the mode":             {engine.FIPSStatus{Module: "v1.0.0", Mode: "off"}, "FIPS 140-3 mode is off, expected on: remove fips140 from the environment variable GODEBUG, or set it to fips140=on"},
		"the validated module": {engine.FIPSStatus{Module: "latest", Mode: "on"}, `this program has the version "latest" of the Go Cryptographic Module, expected the validated v1.0.0: build it with GOFIPS140=v1.0.0`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.status.Problem(); sentence(err) != c.want {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
