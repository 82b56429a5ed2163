// SPDX-License-Identifier: Apache-2.0

package kmip_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

func TestTheAddressOfAServerHasThePortOfKMIPUnlessItNamesAnother(t *testing.T) {
	for server, want := range map[string]string{
		"kms.example.com":      "kms.example.com:5696",
		"kms.example.com:1234": "kms.example.com:1234",
		"192.0.2.1":            "192.0.2.1:5696",
		"2001:db8::1":          "[2001:db8::1]:5696",
		"[2001:db8::1]":        "[2001:db8::1]:5696",
		"[2001:db8::1]:1234":   "[2001:db8::1]:1234",
		"":                     "",
		":5696":                "",
		"kms:":                 "",
	} {
		got, err := kmip.Address(server)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", server, got, err, want)
		}
	}
}

func TestAKeyManagerNeedsACertificateAndAServer(t *testing.T) {
	for sentence, test := range map[string]struct {
		config kmip.Config
		want   string
	}{
		"no certificate": {kmip.Config{Servers: []string{"a"}, TLS: clientOf(t, tlsprovider.Config{})}, "kmip: found no certificate of the client, expected one: key managers demand it"},
		"no server":      {kmip.Config{TLS: client(t)}, "kmip: pool: found no endpoint, expected at least one"},
		"no host":        {kmip.Config{Servers: []string{":1"}, TLS: client(t)}, `kmip: found the server ":1", expected a host, or a host and a port`},
	} {
		if _, err := kmip.New(test.config); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", sentence, err, test.want)
		}
	}
}

// client returns a client with a certificate.
func client(t *testing.T) *tlsprovider.Client {
	t.Helper()
	server := httptest.NewTLSServer(nil) // only its certificate is used
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, tlsprovider.Config{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	})
}

func clientOf(t *testing.T, config tlsprovider.Config) *tlsprovider.Client {
	t.Helper()
	client, err := tlsprovider.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAServerThatIsNotThereIsUnavailable(t *testing.T) {
	var config net.ListenConfig
	listening, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listening.Addr().String()
	if err := listening.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := kmip.Dial(t.Context(), address, client(t), nil); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

func TestAServerThatSaysNothingIsGivenUpWithTheContext(t *testing.T) {
	var config net.ListenConfig
	listening, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listening.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := kmip.Dial(ctx, listening.Addr().String(), client(t), nil); !errors.Is(err, keys.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}
