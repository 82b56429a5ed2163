// SPDX-License-Identifier: Apache-2.0

//go:build apiserver && keymanagers

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/openbao"
)

const (
	password   = "hunter2-is-the-password"
	secretsKey = "transit/keys/cluster-secrets"
)

// The policy of the token, and the configurations of the API server and of the key provider, come from docs/kubernetes-kms.md.
func TestSecretsInEtcdAreEncryptedUnderAKeyOfOpenBao(t *testing.T) {
	bao := openbao.Start(t)
	bao.Do(t, http.MethodPost, secretsKey, map[string]any{"type": "aes256-gcm96"})
	link := newLink(t, strings.TrimPrefix(bao.URL, "https://"))
	socket := startKMS(t, bao, "https://"+link.address())
	plane := startPlane(t, socket)
	client := plane.client

	// Secrets are in etcd, encrypted.
	for _, name := range []string{"old", "rewritten"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"password": password}}
		if _, err := client.Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	first := plane.stored(t, "old").GetKeyID()

	// The key is rotated, and a Secret is written again.
	bao.Do(t, http.MethodPost, secretsKey+"/rotate", nil)
	apiserver.Eventually(t, "a Secret that is written again has the new key id", func() error {
		if _, err := plane.get(t, "/readyz"); err != nil { // this request makes the API server ask the plugin
			return err
		}
		secret, err := client.Secrets("default").Get(t.Context(), "rewritten", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, err := client.Secrets("default").Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			return err
		}
		if id := plane.stored(t, "rewritten").GetKeyID(); id == first {
			return fmt.Errorf("it has the key id %s of before the rotation", id)
		}
		return nil
	})
	if id := plane.stored(t, "old").GetKeyID(); id != first {
		t.Errorf("a Secret that nobody has written changed its key id from %s to %s", first, id)
	}
	expectReadable(t, client, "old", "rewritten")

	// The key manager is away. The API server has the keys of both Secrets in memory.
	link.cut(true)
	expectReadable(t, client, "old", "rewritten")

	// The API server is started without the key manager.
	if err := plane.APIServer.Stop(); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { started <- plane.APIServer.Start() }()
	apiserver.Eventually(t, "the health of the API server says why", func() error {
		reason, err := plane.get(t, "/readyz/kms-providers")
		if err == nil || !strings.Contains(reason, `the key provider "bao" does not answer`) {
			return fmt.Errorf("found %q, healthy %t", reason, err == nil)
		}
		return nil
	})
	if verbose, err := plane.get(t, "/readyz?verbose"); err == nil || !strings.Contains(verbose, "[-]kms-providers failed") {
		t.Errorf("the list of health checks has no failure of kms-providers: %v\n%s", err, verbose)
	}
	apiserver.Eventually(t, "the API server is alive, so that no kubelet restarts it", func() error {
		_, err := plane.get(t, "/livez")
		return err
	})
	secret, err := client.Secrets("default").Get(t.Context(), "old", metav1.GetOptions{})
	if err == nil {
		t.Errorf("a Secret was read without the key manager: %d fields", len(secret.Data))
	} else {
		t.Logf("who reads a Secret gets: %v", err)
	}
	if _, err := client.ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("other resources are not served: %v", err)
	}

	// The key manager is back.
	link.cut(false)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	expectReadable(t, client, "old", "rewritten")
}

// expectReadable expects that the Secrets can be read.
func expectReadable(t *testing.T, client typedcorev1.CoreV1Interface, names ...string) {
	t.Helper()
	for _, name := range names {
		secret, err := client.Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("the Secret %s cannot be read: %v", name, err)
		} else if found := string(secret.Data["password"]); found != password {
			t.Errorf("the Secret %s has the password %q", name, found)
		}
	}
}

// startKMS starts gateway kms, and returns the path of its socket.
func startKMS(t *testing.T, bao *openbao.Server, endpoint string) string {
	t.Helper()
	dir := t.TempDir()
	authority, err := os.ReadFile(bao.Authority)
	if err != nil {
		t.Fatal(err)
	}
	credentials := filepath.Join(dir, "bao")
	if err := os.Mkdir(credentials, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(credentials, providers.Token), bao.TokenWith(t, block(t, "hcl", "# kubernetes\n")))
	write(t, filepath.Join(credentials, providers.Authorities), string(authority))
	file := strings.Replace(block(t, "yaml", "# /etc/crypto-broker/key-providers/Providers.yaml\n"), "https://openbao.example.com:8200", endpoint, 1)
	// The plugin asks for the version of the key at each check.
	write(t, filepath.Join(dir, providers.FileName), strings.Replace(file, "OpenBao:", "CacheTime: -1s\n    OpenBao:", 1))

	sockets, err := os.MkdirTemp("", "kms") // the path of a socket is short, and TempDir has the name of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	c, err := parseKMS([]string{"--key=bao/cluster-secrets", "--key-providers-dir=" + dir, "--socket-dir=" + sockets, "--status-bind-address=127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	log := &logBuffer{}
	go func() { ended <- serveKMS(ctx, c, keyProviders, slog.New(slog.NewJSONHandler(log, nil))) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("gateway kms: %v", err)
		}
		if text := log.String(); strings.Contains(text, password) {
			t.Error("the log of the plugin has a Secret")
		}
		if t.Failed() {
			t.Logf("the log of the plugin:\n%s", log.String())
		}
	})
	socket := filepath.Join(sockets, contract.SocketFile)
	apiserver.Eventually(t, "the plugin has its socket", func() error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("gateway kms ended: %v", err)
		default:
		}
		_, err := os.Stat(socket)
		return err
	})
	return socket
}
