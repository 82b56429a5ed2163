// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// Measurement is the average time of an operation.
type Measurement struct {
	// Name is the name of the operation and of its algorithm, such as "HashData/sha-256".
	Name string
	// Average is the average time of one call, without transport and policy lookup.
	Average time.Duration
}

// benchmarkTime is the time for which each operation is measured. An operation that takes longer
// runs once.
const benchmarkTime = 10 * time.Millisecond

// benchmarkInput is the size of the input in bytes.
const benchmarkInput = 1 << 10

// Benchmark measures the operations, each with 1 KiB of input for about 10 ms. All together
// take a quarter of a second. When ctx ends, Benchmark ends and returns its error.
func Benchmark(ctx context.Context) ([]Measurement, error) {
	subjects, err := benchmarkSubjects()
	if err != nil {
		return nil, fmt.Errorf("engine: prepare the benchmark: %w", err)
	}
	results := make([]Measurement, 0, len(subjects))
	for _, subject := range subjects {
		average, err := measure(ctx, subject.run)
		if err != nil {
			return nil, err
		}
		results = append(results, Measurement{subject.name, average})
	}
	return results, nil
}

func measure(ctx context.Context, run func() error) (time.Duration, error) {
	started := time.Now()
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := run(); err != nil {
			return 0, err
		}
		if took := time.Since(started); took >= benchmarkTime {
			return took / time.Duration(n), nil
		}
	}
}

// benchmarkSubject is an operation to measure.
type benchmarkSubject struct {
	name string
	run  func() error
}

// benchmarkProfiles are the profiles for the measurements. FIPS 140-3 approves all their
// algorithms.
const benchmarkProfiles = `FormatVersion: 1
Profiles:
  - Name: "128"
    API:
      EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, NonceStrategy: random}
      SignData: {SignAlg: ed25519}
  - Name: "256"
    API:
      EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random}
      SignData: {SignAlg: ecdsa, HashAlg: sha-256}
      SignCertificate:
        SignAlg: ecdsa
        HashAlg: sha-256
        SKIHashAlg: sha-256
        Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}
        KeyConstraints:
          Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 256}}
          Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 256}}
`

func benchmarkSubjects() ([]benchmarkSubject, error) {
	text := benchmarkProfiles
	for _, algorithm := range algorithm.Digests(algorithm.ForData) {
		text += fmt.Sprintf("  - Name: %q\n    API: {HashData: {HashAlg: %q}}\n", algorithm, algorithm)
	}
	set, problems := profile.Compile(profile.FileName, []byte(text))
	if err := problems.Err(); err != nil {
		return nil, err
	}
	input := make([]byte, benchmarkInput)
	var subjects []benchmarkSubject
	for _, algorithm := range algorithm.Digests(algorithm.ForData) {
		p, _ := set.Lookup(algorithm)
		var buffer [MaxDigestSize]byte
		subjects = append(subjects, benchmarkSubject{profile.OpHashData.String() + "/" + algorithm, func() error {
			AppendDigest(buffer[:0], p.Hash(), input)
			return nil
		}})
	}
	for _, name := range []string{"128", "256"} {
		p, _ := set.Lookup(name)
		more, err := cipherSubjects(p.Cipher(), input)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, more...)
	}
	_, ed25519Key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	for _, signer := range []struct {
		profile string
		key     crypto.Signer
	}{{"128", ed25519Key}, {"256", ecdsaKey}} {
		p, _ := set.Lookup(signer.profile)
		more, err := signatureSubjects(p.Signature(), signer.key, input)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, more...)
	}
	p, _ := set.Lookup("256")
	certificate, err := certificateSubject(p.Certificate(), ecdsaKey)
	if err != nil {
		return nil, err
	}
	return append(subjects, certificate), nil
}

func cipherSubjects(policy *profile.CipherPolicy, input []byte) ([]benchmarkSubject, error) {
	key := make([]byte, policy.KeySize())
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	cipher, err := NewAESGCM(key)
	if err != nil {
		return nil, err
	}
	sealed, err := Encrypt(policy, cipher, nil, input, nil)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("/%s-%d", policy.Algorithm(), 8*policy.KeySize())
	return []benchmarkSubject{
		{profile.OpEncryptData.String() + name, func() error {
			_, err := Encrypt(policy, cipher, nil, input, nil)
			return err
		}},
		{profile.OpDecryptData.String() + name, func() error {
			_, err := Decrypt(policy, cipher, sealed, nil)
			return err
		}},
	}, nil
}

func signatureSubjects(policy *profile.SignaturePolicy, key crypto.Signer, input []byte) ([]benchmarkSubject, error) {
	signing, verifying := []SigningKey{{Signer: key}}, []VerifyingKey{{Public: key.Public()}}
	signature, err := Sign(policy, profile.SignatureRAW, signing, input)
	if err != nil {
		return nil, err
	}
	return []benchmarkSubject{
		{profile.OpSignData.String() + "/" + policy.Algorithm(), func() error {
			_, err := Sign(policy, profile.SignatureRAW, signing, input)
			return err
		}},
		{profile.OpVerifyData.String() + "/" + policy.Algorithm(), func() error {
			_, err := Verify(policy, profile.SignatureRAW, verifying, input, signature)
			return err
		}},
	}, nil
}

func certificateSubject(policy *profile.CertificatePolicy, key crypto.Signer) (benchmarkSubject, error) {
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Benchmark"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
		SubjectKeyId: []byte("Benchmark"),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return benchmarkSubject{}, err
	}
	issuer, err := x509.ParseCertificate(der)
	if err != nil {
		return benchmarkSubject{}, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "Benchmark"}}, key)
	if err != nil {
		return benchmarkSubject{}, err
	}
	csr := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
	return benchmarkSubject{profile.OpSignCertificate.String() + "/" + policy.SignatureAlgorithmName(), func() error {
		_, err := IssueCertificate(policy, Issuer{Key: key, Certificate: issuer}, CertificateRequest{CSR: csr}, now)
		return err
	}}, nil
}
