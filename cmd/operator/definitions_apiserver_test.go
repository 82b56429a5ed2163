// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
)

// argumentsVariable has the arguments where the test binary is to be the operator.
const argumentsVariable = "CRYPTO_BROKER_TEST_OPERATOR"

func TestMain(m *testing.M) {
	if arguments := os.Getenv(argumentsVariable); arguments != "" {
		os.Exit(run(ctrl.SetupSignalHandler(), strings.Fields(arguments), lookupNothing, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// logBuffer is a log that a test reads while the operator writes.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

var eventually = apiserver.Eventually

// reserve returns an address of loopback for the operator, and its port.
func reserve(t *testing.T) (address, port string) {
	t.Helper()
	address, err := loopback.Reserve("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err = net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return address, port
}

// answer returns the code and the body of a probe.
func answer(url string) (int, string, error) {
	response, err := http.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestAnOperatorThatStartsBeforeItsResourceDefinitionsSaysSoAndBeginsByItself(t *testing.T) {
	admin := apiserver.StartBareFor(t)
	useCluster(t, admin)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var log logBuffer
	health, _ := reserve(t)
	_, webhooks := reserve(t)
	operator := exec.CommandContext(t.Context(), os.Args[0])
	operator.Env = append(os.Environ(), argumentsVariable+"=--namespace=crypto-broker-system --leader-elect=false --metrics-bind-address=0 --broker-image=broker:1"+
		" --health-probe-bind-address="+health+" --webhook-port="+webhooks)
	operator.Stderr = &log
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the operator:\n%s", &log)
		}
	})

	const sentence = "the resource definitions cryptoprofiles.cryptobroker.io, clustercryptoprofiles.cryptobroker.io, keyproviders.cryptobroker.io, clusterkeyproviders.cryptobroker.io, " +
		"keyaccesspolicies.cryptobroker.io, keyaccesspeers.cryptobroker.io are not installed, and the operator begins once they are"
	eventually(t, "the operator says what is missing", func() error {
		code, _, err := answer("http://" + health + "/healthz")
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("/healthz has the code %d: %w", code, err)
		}
		code, body, err := answer("http://" + health + "/readyz")
		if err != nil || code != http.StatusServiceUnavailable || !strings.Contains(body, sentence) {
			return fmt.Errorf("/readyz has the code %d, %q: %w", code, body, err)
		}
		return nil
	})
	if n := strings.Count(log.String(), sentence); n != 1 {
		t.Errorf("the log says %d times what is missing, expected once", n)
	}

	definitions := envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "..", "config", "crd", "bases")}}
	if _, err := envtest.InstallCRDs(admin, definitions); err != nil {
		t.Fatal(err)
	}
	kubernetes, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	profile := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	profile.Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha-256"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "crypto-broker-system"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		profile,
	} {
		if err := kubernetes.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the operator writes a set", func() error {
		return kubernetes.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: v1alpha1.ProfilesConfigMap}, &corev1.ConfigMap{})
	})
	if err := operator.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := operator.Wait(); err != nil {
		t.Errorf("the operator ended with %v, expected no error", err)
	}
}

func TestAnOperatorThatStartsWhileTheAPIServerIsAwayWaitsForIt(t *testing.T) {
	admin := apiserver.StartFor(t)
	server, err := url.Parse(admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	away := rest.CopyConfig(admin)
	address, _ := reserve(t)
	away.Host = "https://" + address
	health, _ := reserve(t)
	ended := make(chan error, 1)
	go func() { ended <- awaitDefinitions(t.Context(), away, health) }()
	eventually(t, "the operator lives, and says that the API server does not answer", func() error {
		code, _, err := answer("http://" + health + "/healthz")
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("/healthz has the code %d: %w", code, err)
		}
		code, body, err := answer("http://" + health + "/readyz")
		if err != nil || code != http.StatusServiceUnavailable || !strings.Contains(body, "connection refused") {
			return fmt.Errorf("/readyz has the code %d, %q: %w", code, body, err)
		}
		return nil
	})

	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go loopback.Relay(listener, server.Host)
	if err := <-ended; err != nil {
		t.Errorf("the wait ended with %v, expected no error", err)
	}
}
