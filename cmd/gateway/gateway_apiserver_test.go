// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/podauth"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

// broker returns the provider that the broker of a pod has.
func broker(t *testing.T, g *process, token, authority string) *gateway.Client {
	t.Helper()
	dir := t.TempDir()
	c, err := gateway.New(gateway.Options{
		Address: g.listener.Addr().String(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		TokenFile: write(t, filepath.Join(dir, "token"), token), AuthoritiesFile: write(t, filepath.Join(dir, "ca.crt"), authority),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func key(ctx context.Context, from *gateway.Client, profileName string, operation profile.Operation) (*keys.Key, error) {
	return from.Key(ctx, keys.Name{ID: "kms/orders", Use: keys.Use{Profile: profileName, Operation: operation}})
}

type sealed struct{ nonce, ciphertext, tag []byte }

func encrypt(ctx context.Context, from *gateway.Client) (s sealed, err error) {
	k, err := key(ctx, from, "orders", profile.OpEncryptData)
	if err == nil {
		s.nonce, s.ciphertext, s.tag, err = k.Cipher(ctx).SealRandom([]byte("message"), []byte("additional"))
	}
	return s, err
}

func decrypt(ctx context.Context, from *gateway.Client, s sealed) (string, error) {
	k, err := key(ctx, from, "orders", profile.OpDecryptData)
	if err != nil {
		return "", err
	}
	message, err := k.Cipher(ctx).Open(s.nonce, s.ciphertext, s.tag, []byte("additional"))
	return string(message), err
}

// get returns the answer of the status port.
func (g *process) get(t *testing.T, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.status.listener.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// running is a gateway that runs until the test ends or stop is called.
type running struct {
	*process
	stop func()
}

// startGateway starts a gateway with a directory of certificates and a file of keys that it trusts.
func startGateway(t *testing.T, certificates, trustedKeys string, types providers.Types, flags ...string) running {
	t.Helper()
	c, err := parse(append(flags,
		"--bind-address=127.0.0.1:0", "--status-bind-address=127.0.0.1:0", "--certificate-dir="+certificates, "--shutdown-delay=0s",
		"--trusted-keys-file="+trustedKeys, "--operator-namespace="+operatorNamespace,
	), noVariables)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(access)
	config.Impersonate.UserName = gatewayUser
	g, err := prepare(t.Context(), config, c, types, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.run(ctx) }()
	r := running{g, sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
	})}
	t.Cleanup(r.stop)
	apiserver.Eventually(t, "the gateway is ready", func() error {
		if code, body := g.get(t, "/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	return r
}

func TestAPodUsesTheKeysOfItsNamespaceAndOfNoOther(t *testing.T) {
	ring := newRing(t)
	shop, other, without := newTenant(t, "shop", ring), newTenant(t, "other", ring), newTenant(t, "without", ring)
	shop.addProvider(t)
	other.addProvider(t)
	robbed := newTenant(t, "robbed", ring)
	robbed.place(t, "192.0.2.7")

	opened := &managers{}
	certificates, trustedKeys, ofOperator := mount(t, ring)
	g := startGateway(t, certificates, trustedKeys, providers.Types{providers.OpenBao: opened.connect})
	t.Cleanup(func() {
		g.stop()
		if n := opened.open.Load(); n != 0 {
			t.Errorf("%d providers are open after the end", n)
		}
	})

	served := func(authority, name string) error {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(authority))
		dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name}}
		connection, err := dialer.DialContext(t.Context(), "tcp", g.listener.Addr().String())
		if err != nil {
			return err
		}
		return connection.Close()
	}
	if err := served(ofOperator, gatewayService+"."+operatorNamespace+".svc"); err != nil {
		t.Errorf("a broker refuses the certificate of the operator: %v", err)
	}
	// From here on, the certificate is for the address of this machine.
	authority := issue(t, certificates)
	apiserver.Eventually(t, "the gateway has another certificate", func() error { return served(authority, "127.0.0.1") })

	// Each namespace has its own key of the same name, and the broker of one cannot use the
	// other's.
	ofShop, ofOther := broker(t, g.process, shop.token(t, podauth.Audience), authority), broker(t, g.process, other.token(t, podauth.Audience), authority)
	var message sealed
	apiserver.Eventually(t, "a pod of shop encrypts", func() (err error) {
		message, err = encrypt(t.Context(), ofShop)
		return err
	})
	apiserver.Eventually(t, "a pod of the other namespace encrypts", func() error {
		_, err := encrypt(t.Context(), ofOther)
		return err
	})
	if found, err := decrypt(t.Context(), ofShop, message); err != nil || found != "message" {
		t.Errorf("a pod of shop decrypted %q, error %v", found, err)
	}
	for sentence, test := range map[string]struct {
		err  error
		want error
	}{
		"a pod of another namespace with a key of the same name": {errorOf(decrypt(t.Context(), ofOther, message)), engine.ErrAuthentication},
		"a pod of a namespace without key providers":             {errorOf(decrypt(t.Context(), broker(t, g.process, without.token(t, podauth.Audience), authority), message)), keys.ErrUnusable},
		"a token of a pod at another address":                    {errorOf(decrypt(t.Context(), broker(t, g.process, robbed.token(t, podauth.Audience), authority), message)), keys.ErrDenied},
		"a token for another audience":                           {errorOf(decrypt(t.Context(), broker(t, g.process, shop.token(t, "vault"), authority), message)), keys.ErrDenied},
		"a profile that the key provider does not allow":         {errorOf(key(t.Context(), ofShop, "payments", profile.OpEncryptData)), keys.ErrDenied},
		"a profile that the namespace does not have":             {errorOf(key(t.Context(), ofShop, "admin", profile.OpEncryptData)), keys.ErrDenied},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v, want %v", sentence, test.err, test.want)
		}
	}

	_, metrics := g.get(t, "/metrics")
	for _, line := range []string{
		`crypto_broker_gateway_requests_total{code="OK",method="Encrypt"} 2`,
		`crypto_broker_gateway_requests_total{code="InvalidArgument",method="Decrypt"} 1`,
		`crypto_broker_gateway_requests_total{code="Unauthenticated",method="DescribeKey"} 2`,
		`crypto_broker_gateway_key_providers{state="usable",type="openbao"} 2`,
		`crypto_broker_gateway_key_manager_connections{state="idle",type="openbao"} 4`,
		`crypto_broker_gateway_connections 5`,
		`crypto_broker_gateway_key_endpoint_reachable{endpoint="0",uid="` + uidOf(t, "shop") + `"} 1`,
		`crypto_broker_gateway_key_endpoint_paused{endpoint="0",uid="` + uidOf(t, "shop") + `"} 0`,
		`crypto_broker_gateway_key_endpoint_connections{endpoint="0",state="busy",uid="` + uidOf(t, "shop") + `"} 1`,
		`crypto_broker_gateway_key_endpoint_requests_total{endpoint="0",result="denied",uid="` + uidOf(t, "other") + `"} 2`,
		`crypto_broker_gateway_key_endpoint_request_duration_seconds_sum{endpoint="0",uid="` + uidOf(t, "other") + `"} 1`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("the metrics have no line %s", line)
		}
	}
	// The connections with which the test checked the gateway's certificate do not negotiate HTTP/2.
	if !regexp.MustCompile(`(?m)^crypto_broker_gateway_failed_handshakes_total [1-9]`).MatchString(metrics) {
		t.Error("the metrics count no failed handshake")
	}
	for _, name := range []string{"shop", "orders", "bao.", "token"} {
		if strings.Contains(metrics, name) {
			t.Errorf("the metrics have %q, which a user has chosen", name)
		}
	}

	expectReport(t, g.process)

	// A certificate of another authority takes effect without a restart.
	renewed := broker(t, g.process, shop.token(t, podauth.Audience), issue(t, certificates))
	apiserver.Eventually(t, "the gateway has its new certificate", func() error {
		_, err := decrypt(t.Context(), renewed, message)
		return err
	})
}

func errorOf[T any](_ T, err error) error { return err }

// uidOf returns the UID of the namespace's key provider.
func uidOf(t *testing.T, namespace string) string {
	t.Helper()
	var provider v1alpha1.KeyProvider
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "kms"}, &provider); err != nil {
		t.Fatal(err)
	}
	return string(provider.UID)
}

// expectReport expects that the gateway reports both providers to the operator, without any name, and that it sends the document
// only if it has changed.
func expectReport(t *testing.T, g *process) {
	t.Helper()
	code, body := g.get(t, contract.KeyProvidersPath)
	report, err := providerreport.Parse([]byte(body))
	if code != http.StatusOK || err != nil {
		t.Fatalf("the report has the status %d and the error %v", code, err)
	}
	reached := true
	want := []providerreport.Endpoint{{Reached: &reached, Version: "2.5.0", Latency: 5 * time.Millisecond, Connections: 3}}
	uids := []string{uidOf(t, "shop"), uidOf(t, "other")}
	slices.Sort(uids)
	if len(report.Providers) != 2 {
		t.Fatalf("the report has %d providers, expected 2", len(report.Providers))
	}
	for i, p := range report.Providers {
		if string(p.UID) != uids[i] || p.Generation != 1 || p.Problem != "" || p.SecretVersion == "" || !reflect.DeepEqual(p.Endpoints, want) {
			t.Errorf("the report has %+v", p)
		}
	}
	for _, name := range []string{"shop", "other", "kms", "orders", "bao", "token"} {
		if strings.Contains(body, name) {
			t.Errorf("the report has %q, which a user has chosen", name)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.status.listener.Addr().String()+contract.KeyProvidersPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("If-None-Match", etagOf(t, g))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNotModified {
		t.Errorf("the status of a report that is known is %d, expected 304", response.StatusCode)
	}
}

func etagOf(t *testing.T, g *process) string {
	t.Helper()
	response, err := http.Get("http://" + g.status.listener.Addr().String() + contract.KeyProvidersPath)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.Header.Get("ETag")
}
