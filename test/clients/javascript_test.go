// SPDX-License-Identifier: Apache-2.0

//go:build clients && linux

package clients_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha3"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

// given is what the scenario sends.
type given struct {
	Input        []byte `json:"input"`
	Key          []byte `json:"key"`
	Nonce        []byte `json:"nonce"`
	AAD          []byte `json:"aad"`
	CSR          string `json:"csr"`
	CAPrivateKey string `json:"caPrivateKey"`
	CACert       string `json:"caCert"`
	Subject      string `json:"subject"`
	NotBefore    int64  `json:"notBefore"`
	NotAfter     int64  `json:"notAfter"`
	CRL          string `json:"crl"`
}

// received is what came back.
type received struct {
	Health      int
	Hex         string
	Raw         []byte
	Large       string
	Algorithm   string
	Metadata    map[string]any
	Descriptor  map[string]any
	PEM         string
	DER         []byte
	Ciphertext  []byte
	Tag         []byte
	WholeTag    []byte
	Opened      []byte
	OpenedByID  bool
	KeyID       string
	Deprecation map[string]any
	Benchmark   string
	Refusals    map[string]refusal

	ServedAfterRefusals string
}

type refusal struct {
	Code    int
	Message string
}

const serving = 1 // grpc.health.v1.HealthCheckResponse.ServingStatus

const furtherProfiles = `
- Name: Tags as released
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: user-provided, TagLength: 96}}
- Name: Old
  API: {HashData: {HashAlg: sha-256}}
  Deprecation: {ReplacedBy: Default, Reason: shorter than others}
`

// ordersProfile lists keys of the broker, of which it has the first.
const ordersProfile = `
- Name: Orders
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: user-provided, TagLength: 128, KeyIds: [{Id: orders}, {Id: nobody}]}}
`

func TestTheReleasedJavaScriptClientIsServed(t *testing.T) {
	sent, issuer := prepare(t)
	b := start(t, string(catalogue.Profiles)+furtherProfiles+ordersProfile, map[string][]byte{"orders.bin": sent.Key}, "--development-service")
	var got received
	b.scenario(sent, &got)

	sum, large := sha3.Sum512(sent.Input), sha3.Sum512(bytes.Repeat([]byte{7}, 1<<20))
	if got.Health != serving || got.Hex != hex.EncodeToString(sum[:]) || !bytes.Equal(got.Raw, sum[:]) || got.Algorithm != "sha3-512" || got.Large != hex.EncodeToString(large[:]) {
		t.Errorf("health %d, hashes %s, %x and %s by %s", got.Health, got.Hex, got.Raw, got.Large, got.Algorithm)
	}
	if got.Metadata["id"] != "4f6b4711" || got.Metadata["traceContext"].(map[string]any)["correlationId"] != "order 4711" {
		t.Errorf("metadata %v", got.Metadata)
	}
	if diff := cmp.Diff(map[string]any{"profile": "Default", "operation": "HashData", "algorithm": "sha3-512"}, got.Descriptor); diff != "" {
		t.Errorf("descriptor (-want +got):\n%s", diff)
	}
	if got.Deprecation["replacedBy"] != "Default" || got.Deprecation["reason"] != "shorter than others" {
		t.Errorf("the warning of a deprecated profile is %v", got.Deprecation)
	}
	checkCertificates(t, sent, issuer, got)

	block, err := aes.NewCipher(sent.Key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	if want := gcm.Seal(nil, sent.Nonce, sent.Input, sent.AAD); !bytes.Equal(append(got.Ciphertext, got.Tag...), want) {
		t.Errorf("ciphertext %x and tag %x, want %x", got.Ciphertext, got.Tag, want)
	}
	if !bytes.Equal(got.WholeTag, got.Tag) {
		t.Errorf("with TagLength 96 the tag is %x, want %x", got.WholeTag, got.Tag)
	}
	if !bytes.Equal(got.Opened, sent.Input) || !got.OpenedByID || got.KeyID != "orders" {
		t.Errorf("decrypted %q; with the key %q: %t", got.Opened, got.KeyID, got.OpenedByID)
	}
	if !strings.HasPrefix(got.Benchmark, `{"results":[{"name":"HashData/sha-256","avgTime":`) {
		t.Errorf("benchmark %s", got.Benchmark)
	}
	if got.ServedAfterRefusals != got.Hex {
		t.Errorf("after calls that were refused the hash is %s, want %s", got.ServedAfterRefusals, got.Hex)
	}
	want := map[string]refusal{
		"profile":   {3, `HashData with profile "Nobody's": no profile of this name is served`},
		"operation": {9, `EncryptData with profile "Default": the profile does not offer this operation`},
		"key":       {3, `EncryptData with profile "FIPS-140-3-256bit": keySource is a key of 128 bits, expected one of 256 bits`},
		"keyId":     {5, `EncryptData with profile "Orders": there is no key "nobody"`},
		"unlisted":  {7, `EncryptData with profile "FIPS-140-3-256bit": the profile lists no keys of the broker, so requests bring their own; to use the key "orders", add it to API.EncryptData.KeyIds`},
		"tag":       {3, `DecryptData with profile "FIPS-140-3-256bit": ciphertext does not authenticate with this key, nonce, aad and tag`},
		"csr":       {3, `SignCertificate with profile "Default": csr has a PEM block "CERTIFICATE", expected "CERTIFICATE REQUEST"`},
	}
	if diff := cmp.Diff(want, got.Refusals); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}

func TestTheReleasedJavaScriptClientLearnsThatThereIsNoDevelopmentService(t *testing.T) {
	sent, _ := prepare(t)
	b := start(t, string(catalogue.Profiles)+furtherProfiles+ordersProfile, map[string][]byte{"orders.bin": sent.Key})
	var got received
	if b.scenario(sent, &got); got.Benchmark != `{"code":12}` {
		t.Errorf("benchmark %s, want the code 12 (UNIMPLEMENTED)", got.Benchmark)
	}
}

// prepare makes what the scenario sends, and the issuer of its certificates.
func prepare(t *testing.T) (given, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(365 * 24 * time.Hour),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	subjectKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "app"}}, subjectKey)
	if err != nil {
		t.Fatal(err)
	}
	inPEM := func(label string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
	}
	sent := given{
		Input: []byte("Hello world"), Key: make([]byte, 32), Nonce: make([]byte, 12), AAD: []byte("42 is the answer"),
		CSR: inPEM("CERTIFICATE REQUEST", request), CAPrivateKey: inPEM("EC PRIVATE KEY", private), CACert: inPEM("CERTIFICATE", der),
		Subject: "CN=MyCert,O=Example,C=DE", NotBefore: now.Unix(), NotAfter: now.Add(30 * 24 * time.Hour).Unix(), CRL: "http://example.com/list.crl",
	}
	for _, random := range [][]byte{sent.Key, sent.Nonce} {
		if _, err := rand.Read(random); err != nil {
			t.Fatal(err)
		}
	}
	return sent, issuer
}

func checkCertificates(t *testing.T, sent given, issuer *x509.Certificate, got received) {
	t.Helper()
	block, rest := pem.Decode([]byte(got.PEM))
	if block == nil || len(rest) > 0 {
		t.Fatalf("no certificate in PEM: %q", got.PEM)
	}
	for form, der := range map[string][]byte{"PEM": block.Bytes, "DER": got.DER} {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		if err := certificate.CheckSignatureFrom(issuer); err != nil {
			t.Errorf("%s: %v", form, err)
		}
		want := "CN=app"
		if form == "DER" {
			want = sent.Subject
			if certificate.NotBefore.Unix() != sent.NotBefore || certificate.NotAfter.Unix() != sent.NotAfter || certificate.CRLDistributionPoints[0] != sent.CRL {
				t.Errorf("valid from %s to %s, lists %v", certificate.NotBefore, certificate.NotAfter, certificate.CRLDistributionPoints)
			}
		}
		if certificate.Subject.String() != want {
			t.Errorf("%s: subject %s, want %s", form, certificate.Subject, want)
		}
	}
}

// scenario runs the scenario beside the broker.
func (b *broker) scenario(sent given, got *received) {
	b.t.Helper()
	input, err := json.Marshal(sent)
	if err != nil {
		b.t.Fatal(err)
	}
	output := b.runInNamespace(javascript(b.t), input, "node", "scenario.mjs")
	if err := json.Unmarshal(output, got); err != nil {
		b.t.Fatalf("%v\n%s", err, output)
	}
}

// javascript installs the released client beside a copy of the scenario, once
// for all tests, and returns the folder.
func javascript(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(workspace, "javascript")
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	if err := os.CopyFS(folder, os.DirFS("javascript")); err != nil {
		t.Fatal(err)
	}
	command(t, folder, "npm", "ci")
	return folder
}
