// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/mldsa"
	mldsax509 "filippo.io/mldsa/x509"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// signaturePolicy compiles the policy of a profile whose SignData has these lines.
func signaturePolicy(t testing.TB, lines ...string) *profile.SignaturePolicy {
	t.Helper()
	text := "- Name: P\n  API:\n    SignData:\n"
	for _, line := range lines {
		text += "      " + line + "\n"
	}
	set, problems := profile.Compile(profile.FileName, []byte(text))
	if err := problems.Err(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p, _ := set.Lookup("P")
	return p.Signature()
}

// signatureKey returns a key of a kind that certificateKey knows, or an ML-DSA key such as "ml-dsa-65". The same kind always gives
// the same key.
func signatureKey(t testing.TB, kind string) crypto.Signer {
	t.Helper()
	parameters, ok := map[string]mldsa.Parameters{
		"ml-dsa-44": mldsa.MLDSA44(), "ml-dsa-65": mldsa.MLDSA65(), "ml-dsa-87": mldsa.MLDSA87(),
	}[strings.TrimSuffix(kind, "/other")]
	if !ok {
		return certificateKey(t, kind)
	}
	seed := make([]byte, mldsa.PrivateKeySize)
	copy(seed, kind)
	key, err := mldsa.NewPrivateKey(parameters, seed)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signers and verifiers make the keys of a request, of kinds joined by "+".
func signers(t testing.TB, kinds string, certificates ...*x509.Certificate) []engine.SigningKey {
	t.Helper()
	var keys []engine.SigningKey
	for kind := range strings.SplitSeq(kinds, "+") {
		keys = append(keys, engine.SigningKey{Signer: signatureKey(t, kind), Certificates: certificates})
	}
	return keys
}

func verifiers(t testing.TB, kinds string, certificates ...*x509.Certificate) []engine.VerifyingKey {
	t.Helper()
	var keys []engine.VerifyingKey
	for kind := range strings.SplitSeq(kinds, "+") {
		keys = append(keys, engine.VerifyingKey{Public: signatureKey(t, kind).Public(), Certificates: certificates})
	}
	return keys
}

// signerCertificate makes a self-signed certificate for a key.
func signerCertificate(t testing.TB, kind string, change func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	key := signatureKey(t, kind)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(4711), Subject: pkix.Name{CommonName: "signer"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature,
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
	return certificate
}

// saved writes data to a file and returns its path.
func saved(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func savedKey(t testing.TB, key crypto.Signer) string {
	t.Helper()
	der, err := mldsax509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return saved(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func savedPublic(t testing.TB, key crypto.Signer) string {
	t.Helper()
	der, err := mldsax509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return saved(t, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}
