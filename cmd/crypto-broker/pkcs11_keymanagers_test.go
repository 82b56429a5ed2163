// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers && pkcs11

package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"debug/elf"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
	"github.com/crypto-broker/crypto-broker-operator/test/softhsm"
)

// tokenProfiles use keys of the token alone.
const tokenProfiles = `
- Name: Ed25519
  API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: hsm/ed25519}]}}
- Name: RSA
  API: {SignData: {SignAlg: rsa-pss, HashAlg: sha-256, KeyIds: [{Id: hsm/rsa}]}}
- Name: ECDSA
  API: {SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: hsm/p256}]}}
- Name: Orders
  API:
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: hsm/orders}]}
    DataKeys: {WrapAlgs: [aes-kw], KeySize: 256, KeyIds: [{Id: hsm/orders}]}
- Name: Padded
  API: {DataKeys: {WrapAlgs: [aes-kwp], KeySize: 256, KeyIds: [{Id: hsm/orders}]}}
- Name: Bound
  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: hsm/orders}]}}
- Name: Public
  API: {DataKeys: {WrapAlgs: [rsa-oaep-sha-256], KeySize: 256, KeyIds: [{Id: hsm/rsa}, {Id: hsm/p256}, {Id: hsm/ed25519}, {Id: hsm/issuer}]}}
- Name: Issuing
  API:
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-256
      Validity: {ValidNotBeforeOffset: 0h, ValidNotAfterOffset: 1h}
      KeyConstraints:
        Subject: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}
        Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}
      KeyIds: [{Id: hsm/issuer}]
`

// tokenBroker is a broker with PKCS #11 whose keys are in a token.
type tokenBroker struct {
	*sandbox
	token  *softhsm.Token
	client v1.CryptoServiceClient
	ctx    context.Context //nolint:containedctx // for all calls of a test
	// restart starts the broker again.
	restart func()
}

// brokerWithPKCS11 builds the broker with cgo and the tags of make build-pkcs11, and returns its path.
var brokerWithPKCS11 = sync.OnceValues(func() (string, error) {
	program := filepath.Join(binaries, "broker-pkcs11")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-tags", "grpcnotrace,pkcs11", "-o", program, "../broker")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	output, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, output)
	}
	return program, err
})

// startTokenBroker starts a broker with a token. put creates the keys of the token.
func startTokenBroker(t *testing.T, put func(*softhsm.Token)) *tokenBroker {
	t.Helper()
	softhsm.Start(t)
	program, err := brokerWithPKCS11()
	if err != nil {
		t.Fatal(err)
	}
	s := newSandbox(t)
	s.write("profiles/Profiles.yaml", tokenProfiles)
	token := softhsm.NewToken(t, "broker")
	put(token)
	s.write("providers/Providers.yaml", fmt.Sprintf("Providers:\n- {Name: hsm, Type: pkcs11, CacheTime: -1s, PKCS11: {Module: %s, TokenLabel: %s}}\n", softhsm.Library, token.Label))
	s.write("providers/hsm/pin", softhsm.PIN)
	start := func() { s.startProgram(program, "--key-providers-dir", filepath.Join(s.dir, "providers")) }
	start()
	called := &connection.Broker{Socket: s.socket, Timeout: 5 * time.Minute}
	if err := called.Open(&cobra.Command{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(called.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return &tokenBroker{s, token, v1.NewCryptoServiceClient(called.Conn), ctx, start}
}

// change changes the token while no broker runs. Processes that use a token of SoftHSM at the same time disturb each other:
// a login writes to its files, too.
func (b *tokenBroker) change(by func()) {
	b.stop()
	by()
	b.restart()
}

// public returns the public key of a key pair.
func (b *tokenBroker) public(id string) any {
	b.t.Helper()
	reply, err := b.client.GetPublicKey(b.ctx, &v1.GetPublicKeyRequest{Profile: "Public", KeyId: id})
	if err != nil {
		b.t.Fatal(err)
	}
	key, err := x509.ParsePKIXPublicKey(reply.GetDer())
	if err != nil {
		b.t.Fatal(err)
	}
	return key
}

func (b *tokenBroker) sign(profile, id string, input []byte) []byte {
	b.t.Helper()
	reply, err := b.client.SignData(b.ctx, &v1.SignDataRequest{
		Profile: profile, Input: input, SignatureFormat: v1.SignatureFormat_SIGNATURE_FORMAT_DER,
		KeySource: &v1.SignKeySource{Source: &v1.SignKeySource_Single{Single: &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: id}}}},
	})
	if err != nil {
		b.t.Fatalf("%s: %v", id, err)
	}
	return reply.GetSignature()
}

func TestABrokerSignsWithKeysOfAToken(t *testing.T) {
	b := startTokenBroker(t, func(token *softhsm.Token) {
		p256 := asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7}
		token.MakeEd25519(t, "ed25519", 1)
		token.MakeRSA(t, "rsa", 1, 2048)
		token.MakeEC(t, "p256", 1, p256)
		token.MakeEC(t, "issuer", 1, p256)
	})
	input := []byte("We agree.")
	digest := sha256.Sum256(input)
	if !ed25519.Verify(b.public("hsm/ed25519").(ed25519.PublicKey), input, b.sign("Ed25519", "hsm/ed25519", input)) {
		t.Error("the signature with Ed25519 is not valid")
	}
	if err := rsa.VerifyPSS(b.public("hsm/rsa").(*rsa.PublicKey), crypto.SHA256, digest[:], b.sign("RSA", "hsm/rsa", input), nil); err != nil {
		t.Errorf("the signature with RSA-PSS is not valid: %v", err)
	}
	if !ecdsa.VerifyASN1(b.public("hsm/p256").(*ecdsa.PublicKey), digest[:], b.sign("ECDSA", "hsm/p256", input)) {
		t.Error("the signature with ECDSA is not valid")
	}

	// An external authority issues the certificate of the issuer.
	root, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rootCertificate := &x509.Certificate{Subject: pkix.Name{CommonName: "Root"}}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, rootCertificate, b.public("hsm/issuer"), root)
	if err != nil {
		t.Fatal(err)
	}
	b.change(func() { b.token.ImportCertificate(t, "issuer", 1, nil, der) })
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "app"}}, root)
	if err != nil {
		t.Fatal(err)
	}
	path := b.write("app.csr", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})))
	block, _ := pem.Decode([]byte(b.ok("sign-certificate", "--profile", "Issuing", "--csr", path, "--output", "text")))
	issued, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if err := issued.CheckSignatureFrom(issuer); err != nil || issued.Subject.CommonName != "app" {
		t.Errorf("the certificate of %s is not valid: %v", issued.Subject, err)
	}

	_, err = b.client.WrapKey(b.ctx, &v1.WrapKeyRequest{Profile: "Public", KeyId: "hsm/rsa", DataKey: make([]byte, 32)})
	if want := `the key "hsm/rsa" is a key pair that stays in its key manager, which signs with it and wraps no data keys; expected an AES key`; status.Code(err) != codes.FailedPrecondition || !strings.HasSuffix(status.Convert(err).Message(), want) {
		t.Errorf("to wrap with RSA ended with %v, want %s", err, want)
	}
}

func TestABrokerEncryptsAndWrapsWithKeysOfAToken(t *testing.T) {
	first, second := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	b := startTokenBroker(t, func(token *softhsm.Token) { token.ImportAES(t, "orders", 1, first) })
	byID := func(id string) *v1.KeySource { return &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: id}} }
	encrypt := func() *v1.EncryptDataResponse {
		t.Helper()
		reply, err := b.client.EncryptData(b.ctx, &v1.EncryptDataRequest{Profile: "Orders", KeySource: byID("hsm/orders"), Plaintext: []byte("4711 boxes")})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	old := encrypt()
	memory, err := wrap.NewAES(first)
	if err != nil {
		t.Fatal(err)
	}
	sealed := old.GetCipherMetadata()
	if got, err := memory.Cipher().Open(sealed.GetNonce(), old.GetCiphertext(), sealed.GetTag(), sealed.GetAad()); err != nil || string(got) != "4711 boxes" {
		t.Errorf("outside, the ciphertext is decrypted to %q: %v", got, err)
	}

	wrapped := map[string][]byte{}
	dataKey := bytes.Repeat([]byte{7}, 32)
	for profile, with := range map[string]algorithm.Wrapping{"Orders": algorithm.WrapAESKW, "Padded": algorithm.WrapAESKWP, "Bound": algorithm.WrapAESGCM} {
		reply, err := b.client.WrapKey(b.ctx, &v1.WrapKeyRequest{Profile: profile, KeyId: "hsm/orders", DataKey: bytes.Clone(dataKey)})
		if err != nil {
			t.Fatalf("%s: %v", with, err)
		}
		wrapped[profile] = reply.GetWrappedKey()
		header, inner, err := blob.Parse(reply.GetWrappedKey())
		if err != nil || header.Algorithm != with || header.Provider != "hsm" || header.KeyVersion != "01" {
			t.Errorf("%s: the wrapped key says %+v: %v", with, header, err)
		}
		if got, err := memory.Unwrap(with, inner, header.Additional()); err != nil || !bytes.Equal(got, dataKey) {
			t.Errorf("%s: outside, the data key is not unwrapped: %v", with, err)
		}
	}
	// The token unwraps keys that were wrapped outside with RFC 5649, even a key whose size is no multiple of 8 bytes.
	long := bytes.Repeat([]byte{8}, 33)
	inner, err := memory.Wrap(algorithm.WrapAESKWP, long, nil)
	if err != nil {
		t.Fatal(err)
	}
	outside, err := blob.Encode(blob.Header{Algorithm: algorithm.WrapAESKWP, Provider: "hsm", KeyID: "orders", KeyVersion: "01"}, inner)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := b.client.UnwrapKey(b.ctx, &v1.UnwrapKeyRequest{Profile: "Padded", WrappedKey: outside}); err != nil || !bytes.Equal(reply.GetDataKey(), long) {
		t.Errorf("a key that was wrapped outside: %v", err)
	}

	// The key is rotated. Data of the old version can still be decrypted.
	b.change(func() { b.token.ImportAES(t, "orders", 2, second) })
	if now := encrypt(); now.GetCipherMetadata().GetKeyId() != "hsm/orders#02" || sealed.GetKeyId() != "hsm/orders#01" {
		t.Errorf("encrypted with %s, and before the rotation with %s", now.GetCipherMetadata().GetKeyId(), sealed.GetKeyId())
	}
	plain, err := b.client.DecryptData(b.ctx, &v1.DecryptDataRequest{
		Profile: "Orders", KeySource: byID(sealed.GetKeyId()), Ciphertext: old.GetCiphertext(),
		DecryptMetadata: &v1.DecryptMetadata{Nonce: sealed.GetNonce(), Tag: sealed.Tag, Aad: sealed.Aad},
	})
	if err != nil || string(plain.GetPlaintext()) != "4711 boxes" {
		t.Errorf("under the old version, the ciphertext is decrypted to %q: %v", plain.GetPlaintext(), err)
	}
	for profile, old := range wrapped {
		path := b.write("store/"+profile, string(old))
		if got := b.ok("rewrap", path, "--profile", profile); got != "rewrapped 1, already new 0, failed 0, ignored 0\n" {
			t.Errorf("profile %s: %s", profile, got)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range [][]byte{old, content} {
			if reply, err := b.client.UnwrapKey(b.ctx, &v1.UnwrapKeyRequest{Profile: profile, WrappedKey: version}); err != nil || !bytes.Equal(reply.GetDataKey(), dataKey) {
				t.Errorf("profile %s: the data key is not unwrapped: %v", profile, err)
			}
		}
	}
	_, err = b.client.WrapKey(b.ctx, &v1.WrapKeyRequest{Profile: "Padded", KeyId: "hsm/orders", DataKey: long})
	if want := "found a key of 33 bytes, expected a multiple of 8, because the library of the token does not wrap keys of other sizes as they are"; status.Code(err) != codes.InvalidArgument || !strings.HasSuffix(status.Convert(err).Message(), want) {
		t.Errorf("to wrap 33 bytes ended with %v, want %s", err, want)
	}
}

// docs/key-managers.md says so to those who build an image.
func TestABrokerWithPKCS11NeedsTheCLibraryAlone(t *testing.T) {
	program, err := brokerWithPKCS11()
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // the file was only read
	libraries, err := file.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range libraries {
		// The C library had several files before its version 2.34.
		if !slices.Contains([]string{"libc.so.6", "libdl.so.2", "libpthread.so.0", "libresolv.so.2"}, library) {
			t.Errorf("the broker needs %s", library)
		}
	}
	if !slices.Contains(libraries, "libc.so.6") {
		t.Errorf("the broker needs %v, expected the C library", libraries)
	}
}
