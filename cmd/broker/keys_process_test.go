// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

const encrypting = `
- Name: P
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: app}]}}
`

func encrypt(t *testing.T, conn *grpc.ClientConn) (*v1.EncryptDataResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	return v1.NewCryptoServiceClient(conn).EncryptData(ctx, &v1.EncryptDataRequest{
		Profile: "P", KeySource: &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: "app"}}, Plaintext: []byte("plain"),
	}, grpc.WaitForReady(true))
}

func decrypts(t *testing.T, conn *grpc.ClientConn, sealed *v1.EncryptDataResponse) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	reply, err := v1.NewCryptoServiceClient(conn).DecryptData(ctx, &v1.DecryptDataRequest{
		Profile: "P", KeySource: &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: "app"}}, Ciphertext: sealed.GetCiphertext(),
		DecryptMetadata: &v1.DecryptMetadata{Nonce: sealed.GetCipherMetadata().GetNonce(), Tag: sealed.GetCipherMetadata().GetTag()},
	})
	return err == nil && string(reply.GetPlaintext()) == "plain"
}

func TestABrokerUsesTheKeysOfItsDirectoryAndTellsNobodyThem(t *testing.T) {
	at := newPlace(t, "")
	at.write(encrypting)
	dir := filepath.Join(filepath.Dir(at.profiles), "keys")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	first, second, bad := strings.Repeat("hunter2!", 4), strings.Repeat("hunter3!", 4), "hunter4!\n"
	write := func(key string) {
		t.Helper()
		name := filepath.Join(dir, "app.bin")
		if err := errors.Join(os.WriteFile(filepath.Join(dir, ".new"), []byte(key), 0o600), os.Rename(filepath.Join(dir, ".new"), name)); err != nil {
			t.Fatal(err)
		}
	}

	broker := start(t, at.args("--keys-dir", dir, "--log-level", "debug")...)
	address := broker.listening()
	conn := connect(t, at.socket(""))
	if _, err := encrypt(t, conn); status.Code(err) != codes.NotFound {
		t.Errorf("without a key: %v", err)
	}
	write(first)
	broker.logged("keys loaded", 2)
	old, err := encrypt(t, conn)
	if err != nil || !decrypts(t, conn, old) {
		t.Fatalf("with the first key: %v", err)
	}
	write(bad)
	problem := broker.logged("the broker cannot use a key, or cannot use its new version", 1)
	if problem["path"] != "app.bin" || problem["key"] != "app" || problem["problem"] != "has 9 bytes, expected the 16, 24 or 32 bytes of an AES key, without any encoding and without a newline at the end" {
		t.Errorf("logged %v", problem)
	}
	if !decrypts(t, conn, old) {
		t.Error("a bad new version took the key out of service")
	}
	write(second)
	broker.logged("keys loaded", 4)
	if decrypts(t, conn, old) {
		t.Error("what was encrypted with the first key is decrypted with the second")
	}
	if sealed, err := encrypt(t, conn); err != nil || !decrypts(t, conn, sealed) {
		t.Errorf("with the second key: %v", err)
	}
	_, metrics := get(t, address, "/metrics")
	for _, want := range []string{`crypto_broker_keys{state="used"} 1`, `crypto_broker_keys{state="unusable"} 0`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	for _, l := range broker.log() {
		if text := fmt.Sprint(l); strings.Contains(text, "hunter") || strings.Contains(text, "plain") {
			t.Errorf("the log tells a secret: %s", text)
		}
	}
}

func TestABrokerWithKeysWarnsOfWhatItsProfilesCannotDoWithThem(t *testing.T) {
	key, certificate := authority(t)
	at := newPlace(t, "")
	at.write(encrypting + `
- Name: Own keys
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}}
- Name: Signing
  API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: ca}]}}
- Name: Issuing
  API:
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-256
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}
      KeyConstraints: {Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 256}}, Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 256}}}
      KeyIds: [{Id: ca}]
`)
	dir := filepath.Join(filepath.Dir(at.profiles), "keys")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "ca.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	broker := start(t, at.args("--keys-dir", dir)...)
	broker.listening()
	unlisted := broker.logged("profiles without KeyIds reach no key of the key directory: their requests must contain the key, and the broker refuses a key id", 1)
	if fmt.Sprint(unlisted["profiles"]) != "[Own keys]" || unlisted["level"] != "WARN" {
		t.Errorf("logged %v", unlisted)
	}
	const listed = "a profile lists a key that it cannot use"
	if got := broker.logged(listed, 1); got["profile"] != "Issuing" || got["operation"] != "SignCertificate" || got["key"] != "ca" || got["problem"] != "there is no certificate beside it, expected the issuer's certificate" {
		t.Errorf("logged %v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := broker.logged(listed, 2); got["profile"] != "Signing" || got["operation"] != "SignData" || got["key"] != "ca" || got["problem"] != "it belongs to a certificate authority, expected a key that signs no certificates" {
		t.Errorf("logged %v", got)
	}
}

// authority is the key of a certificate authority with its certificate, as PEM.
func authority(t *testing.T) (key, certificate []byte) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, BasicConstraintsValid: true, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	text := func(label string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})
	}
	return text("PRIVATE KEY", private), text("CERTIFICATE", der)
}
