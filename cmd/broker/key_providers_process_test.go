// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

func TestABrokerFollowsItsKeyProviders(t *testing.T) {
	at := newPlace(t, "")
	at.write(strings.ReplaceAll(encrypting, "Id: app", "Id: hsm/app"))
	dir := filepath.Join(filepath.Dir(at.profiles), "providers")
	write := func(file string) {
		t.Helper()
		path := filepath.Join(dir, "Providers.yaml")
		for _, err := range []error{os.MkdirAll(dir, 0o700), os.WriteFile(path+".new", []byte(file), 0o600), os.Rename(path+".new", path)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	write("Providers: [{Name: HSM}]")
	broker := start(t, at.args("--key-providers-dir", dir)...)
	broker.listening()
	problem := broker.logged("cannot read the key providers: those that are open stay open", 1)
	if text, _ := problem["error"].(string); !strings.Contains(text, `Providers[0].Name is "HSM", expected 1 to 32 lower-case letters`) {
		t.Errorf("logged %v", problem)
	}
	client := v1.NewCryptoServiceClient(connect(t, at.socket("")))
	ask := func() error {
		_, err := client.EncryptData(t.Context(), &v1.EncryptDataRequest{
			Profile: "P", KeySource: &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: "hsm/app"}}, Plaintext: []byte("plain"),
		})
		return err
	}
	if err := ask(); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), `this broker has no key provider "hsm"`) {
		t.Errorf("without the provider: %v", err)
	}
	// Without a certificate of the client, the provider cannot be opened.
	const lonely = "Providers: [{Name: hsm, Type: kmip, Endpoints: ['127.0.0.1:1']}]"
	write(lonely)
	if problem := broker.logged("cannot use a key provider, or cannot use its new configuration", 1); !strings.Contains(problem["problem"].(string), "certificate of the client") {
		t.Errorf("logged %v", problem)
	}
	key, certificate := authority(t)
	for name, content := range map[string][]byte{"tls.key": key, "tls.crt": certificate} {
		path := filepath.Join(dir, "hsm", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Nothing listens at the endpoint. So the provider is open, but its key manager is not available.
	for end := time.Now().Add(waitLimit); ; <-time.After(20 * time.Millisecond) {
		err := ask()
		if status.Code(err) == codes.Unavailable {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("with a key manager that is away: %v", err)
		}
	}
}
