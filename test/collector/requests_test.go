// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// profiles offers each operation.
const profiles = `- Name: Default
  API:
    HashData: {HashAlg: sha-256}
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-256
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 24h}
      KeyConstraints:
        Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}
        Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}
      KeyUsage: [digitalSignature]
      ExtendedKeyUsage: [clientAuth]
      BasicConstraints: {CA: false}
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 128, NonceStrategy: user-provided, TagLength: 128}
    SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyConstraints: {Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}}}
- Name: Operators
  Callers: {Containers: [operator]}
  API:
    HashData: {HashAlg: sha-512}
`

// Values in requests that no span may contain.
const (
	secretInput   = "the plaintext that nobody else may read"
	secretKey     = "0123456789abcdef" // of AES
	secretNonce   = "nonce-of-us!"
	secretSubject = "CN=A Subject Of Ours"
)

// caller has the keys and certificates that requests need.
type caller struct {
	key, csr, certificate []byte // PEM
}

func newCaller(t *testing.T) caller {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "An Authority"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, authority, authority, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "A Subject"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return caller{text("PRIVATE KEY", keyDER), text("CERTIFICATE REQUEST", csr), text("CERTIFICATE", certificate)}
}

// traceContext is the trace context of a request.
type traceContext struct{ traceID, spanID, flags, state, correlationID string }

func (c traceContext) v1() *v1.Metadata {
	return &v1.Metadata{Id: "id", TraceContext: &v1.TraceContext{
		TraceId: c.traceID, SpanId: c.spanID, TraceFlags: c.flags, TraceState: c.state, CorrelationId: c.correlationID,
	}}
}

func (caller) hash(from traceContext) *v1.HashDataRequest {
	return &v1.HashDataRequest{Profile: "Default", Input: []byte(secretInput), Metadata: from.v1()}
}

func (c caller) certify(from traceContext) *v1.SignCertificateRequest {
	subject := secretSubject
	return &v1.SignCertificateRequest{Profile: "Default", Csr: string(c.csr), CaPrivateKey: string(c.key), CaCert: string(c.certificate), Subject: &subject, Metadata: from.v1()}
}

func aesKey() *v1.KeySource {
	return &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: []byte(secretKey)}}
}

func (caller) encrypt(from traceContext) *v1.EncryptDataRequest {
	return &v1.EncryptDataRequest{Profile: "Default", KeySource: aesKey(), Plaintext: []byte(secretInput), EncryptMetadata: &v1.EncryptMetadata{Nonce: []byte(secretNonce)}, Metadata: from.v1()}
}

func (caller) decrypt(from traceContext, sealed *v1.EncryptDataResponse) *v1.DecryptDataRequest {
	return &v1.DecryptDataRequest{
		Profile: "Default", KeySource: aesKey(), Ciphertext: sealed.GetCiphertext(),
		DecryptMetadata: &v1.DecryptMetadata{Nonce: []byte(secretNonce), Tag: sealed.GetCipherMetadata().GetTag()}, Metadata: from.v1(),
	}
}

func (c caller) keyPair() *v1.SignKeySource {
	return &v1.SignKeySource{Source: &v1.SignKeySource_Single{Single: &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: c.key}}}}
}

func (c caller) sign(from traceContext) *v1.SignDataRequest {
	return &v1.SignDataRequest{Profile: "Default", KeySource: c.keyPair(), Input: []byte(secretInput), Metadata: from.v1()}
}

func (c caller) verify(from traceContext, signature []byte) *v1.VerifyDataRequest {
	return &v1.VerifyDataRequest{Profile: "Default", KeySource: c.keyPair(), Input: []byte(secretInput), Signature: signature, Metadata: from.v1()}
}
