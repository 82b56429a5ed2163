// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package server_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/openbao"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	baoserver "github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

// transitStack returns a stack with the provider bao, which remembers nothing. more are credentials in addition to the token.
func transitStack(t *testing.T, s *baoserver.Server, more providers.Credentials) (*keys.Stack, providers.Provider) {
	t.Helper()
	authority, err := os.ReadFile(s.Authority)
	if err != nil {
		t.Fatal(err)
	}
	credentials := providers.Credentials{providers.Token: []byte(s.Token), providers.Authorities: authority}
	maps.Copy(credentials, more)
	provider, err := providers.Types{providers.OpenBao: openbao.Open}.Open(
		&providers.Config{Name: "bao", Type: providers.OpenBao, Endpoints: []string{s.URL}, CacheTime: -time.Second}, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	stack := keys.NewStack(nil)
	stack.Use(map[string]keys.Provider{"bao": provider})
	return stack, provider
}

func TestABrokerEncryptsUnderAKeyThatStaysInOpenBao(t *testing.T) {
	s := baoserver.Start(t)
	stack, provider := transitStack(t, s, nil)
	if err := provider.(keys.Creator).CreateAES(t.Context(), "orders", 256); err != nil {
		t.Fatal(err)
	}
	const profiles = `[{Name: P, API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: bao/orders}]}}}]`
	conn := connect(t, startWith(t, profiles, nil, server.WithKeys(stack)).socket(""))
	encrypt := message{}.text(dataProfile, "P").bytes(dataKey, byID("bao/orders")).text(dataText, "plain")
	reply := ask(t, conn, methodEncryptV1, encrypt)
	sealed := parse(t, []byte(reply[replyCipherMetadata]))
	decrypt := message{}.text(dataProfile, "P").bytes(dataKey, byID("bao/orders")).text(dataText, reply[replyCiphertext]).
		bytes(dataCipherMetadata, message{}.text(cipherNonce, sealed[sealedNonce]).text(cipherTag, sealed[sealedTag]))
	if got := ask(t, conn, methodDecryptV1, decrypt); got[1] != "plain" {
		t.Errorf("decrypted to %q", got[1])
	}
	if err := provider.(keys.Creator).Rotate(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, conn, methodDecryptV1, decrypt); got[1] != "plain" {
		t.Errorf("after the key was rotated: decrypted to %q", got[1])
	}
	forged := message{}.text(dataProfile, "P").bytes(dataKey, byID("bao/orders")).text(dataText, "other").
		bytes(dataCipherMetadata, message{}.text(cipherNonce, sealed[sealedNonce]).text(cipherTag, sealed[sealedTag]))
	refuses(t, conn, methodDecryptV1, forged, codes.InvalidArgument, `DecryptData with profile "P": ciphertext does not authenticate with this key, nonce, aad and tag`)
	s.Kill()
	refuses(t, conn, methodEncryptV1, encrypt, codes.Unavailable, `EncryptData with profile "P": the keys cannot be reached; the broker's log says why`)
}

func TestAKeyThatStaysInOpenBaoIssuesCertificates(t *testing.T) {
	s := baoserver.Start(t)
	s.Do(t, http.MethodPost, "transit/keys/issuer", map[string]any{"type": "ecdsa-p384"})
	bare, _ := transitStack(t, s, nil)
	key, err := bare.Key(t.Context(), keys.Name{ID: "bao/issuer"})
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Issuer"}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key.Signer(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	issuer := issuing{newIssuing(t).csr, "", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
	stack, _ := transitStack(t, s, providers.Credentials{"issuer.crt": []byte(issuer.certificate)})
	conn := certificatesByReference(t, stack, map[string]string{"P": "{Id: bao/issuer}"})
	reply, err := call(t, conn, methodSignCertificateV1, message{}.text(certProfile, "P").text(certCSR, issuer.csr))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields(t, reply) {
		if f.Number == 3 {
			issuer.verified(t, []byte(f.Value))
		}
	}
}

func TestDataKeysAreWrappedByKeysInOpenBao(t *testing.T) {
	s := baoserver.Start(t)
	stack, provider := transitStack(t, s, nil)
	if err := provider.(keys.Creator).CreateAES(t.Context(), "kek", 256); err != nil {
		t.Fatal(err)
	}
	const profiles = `[{Name: P, API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: bao/kek}]}}}]`
	client := v1.NewCryptoServiceClient(connect(t, startWith(t, profiles, nil, server.WithKeys(stack)).socket("")))
	made, err := client.GenerateDataKey(t.Context(), &v1.GenerateDataKeyRequest{Profile: "P", KeyId: "bao/kek", Context: []byte("tenant a")})
	if err != nil {
		t.Fatal(err)
	}
	if err := provider.(keys.Creator).Rotate(t.Context(), "kek"); err != nil {
		t.Fatal(err)
	}
	got, err := client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "P", WrappedKey: made.GetWrappedKey(), Context: []byte("tenant a")})
	if err != nil || !bytes.Equal(got.GetDataKey(), made.GetDataKey()) {
		t.Errorf("after the key was rotated, unwrapped to another key: %v", err)
	}
	forged := bytes.Clone(made.GetWrappedKey())
	forged[len(forged)-1] ^= 1
	if _, err := client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "P", WrappedKey: forged, Context: []byte("tenant a")}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a forged wrapped key: got %v, want InvalidArgument", err)
	}
}
