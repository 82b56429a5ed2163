// SPDX-License-Identifier: Apache-2.0

//go:build process

package service_test

import (
	"context"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

const profiles = `
- Name: P
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: kms/orders}, {Id: kms/forbidden}]}}
- Name: H
  API: {HashData: {HashAlg: sha-256}}
`

// broker runs the program of the broker with the gateway, and returns a connection to it.
func (i *installation) broker(t *testing.T) *grpc.ClientConn {
	t.Helper()
	dir := t.TempDir()
	program, served, socket := filepath.Join(dir, "broker"), filepath.Join(dir, "p"), filepath.Join(dir, "s")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../../broker").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	if err := os.Mkdir(served, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(served, profile.FileName), profiles)
	broker := exec.CommandContext(context.Background(), program, contract.Argument(contract.ProfilesDirFlag, served), contract.Argument(contract.SocketDirFlag, socket),
		contract.Argument(contract.KeyGatewayFlag, i.address), contract.Argument(contract.KeyGatewayTokenFlag, i.token),
		contract.Argument(contract.KeyGatewayAuthoritiesFlag, i.authorities))
	broker.Stderr = i.log
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		broker.Process.Kill() //nolint:errcheck // it may have ended, which Wait says
		if err := broker.Wait(); t.Failed() {
			t.Logf("the broker ended: %v\n%s", err, i.log)
		}
	})
	connection, err := grpc.NewClient("unix:"+filepath.Join(socket, contract.SocketFile), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() }) // the cleanup closes it once
	return connection
}

func TestABrokerEncryptsUnderAKeyOfTheGateway(t *testing.T) {
	i := install(t)
	raw := sha256.Sum256([]byte("key"))
	secret(t, i.manager, "orders", raw[:])
	client := v1.NewCryptoServiceClient(i.broker(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	encrypt := func(id string, size int) (*v1.EncryptDataResponse, error) {
		return client.EncryptData(ctx, &v1.EncryptDataRequest{
			Profile: "P", KeySource: &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: id}}, Plaintext: make([]byte, size),
		}, grpc.WaitForReady(true))
	}
	sealed, err := encrypt("kms/orders", 5)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := client.DecryptData(ctx, &v1.DecryptDataRequest{
		Profile: "P", KeySource: &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: "kms/orders"}}, Ciphertext: sealed.GetCiphertext(),
		DecryptMetadata: &v1.DecryptMetadata{Nonce: sealed.GetCipherMetadata().GetNonce(), Tag: sealed.GetCipherMetadata().GetTag()},
	})
	if err != nil || len(opened.GetPlaintext()) != 5 {
		t.Errorf("decrypted %d bytes, error %v", len(opened.GetPlaintext()), err)
	}
	if _, err := encrypt("kms/orders", 100<<10); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an input that is too large for the gateway: %v, want INVALID_ARGUMENT", err)
	}
	if _, err := encrypt("kms/forbidden", 5); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a key that the gateway does not allow: %v, want PERMISSION_DENIED", err)
	}

	i.stop(i.server)
	if _, err := encrypt("kms/orders", 5); status.Code(err) != codes.Unavailable {
		t.Errorf("the gateway is away: %v, want UNAVAILABLE", err)
	}
	if _, err := client.HashData(ctx, &v1.HashDataRequest{Profile: "H", Input: []byte("m")}); err != nil {
		t.Errorf("the gateway is away, and a call that needs no key of it fails: %v", err)
	}
}
