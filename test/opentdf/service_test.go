// SPDX-License-Identifier: Apache-2.0

package opentdf

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/opentdf/platform/lib/ocrypto"

	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
)

// gateway is the program of the service.
var gateway string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// run builds the gateway and runs the tests.
func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "opentdf-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	gateway = filepath.Join(folder, "gateway")
	// These are the flags of images, so that the build cache has the packages once.
	build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", gateway, "./cmd/gateway")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFIPS140=v1.0.0")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the gateway: %v\n%s", err, output)
		return 1
	}
	return m.Run()
}

// endpoints are what clients need to know of the service.
type endpoints struct {
	// service and issuer are the URLs of both.
	service, issuer string
}

// start starts an issuer and a key access service, which end with the test. setting is the name of
// what the service accepts from clients of this issuer beyond RFC 9449.
func start(t *testing.T, setting string) endpoints {
	t.Helper()
	// Clients reach the service by a port that is known before the service has its own.
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	url := "http://" + front.Addr().String()
	idp := issuer.Start(t, issuer.Options{HTTP: true, Audience: "key-access"})
	idp.Add(issuer.Client{ID: "reader", Secret: "secret"})
	keys := writeKeys(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf(`url: %s
bindAddress: 127.0.0.1:0
statusBindAddress: "0"
insecurePlaintext: true
keyDir: %s
issuers:
- {url: %q, audiences: [key-access], insecureLoopback: true, %s: true}
access: {allowWithoutAttributes: true}
`, url, keys, idp.URL, setting)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	service := exec.Command(gateway, "key-access", "--config", config)
	log, err := service.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	line := struct{ Msg, Address string }{}
	for line.Msg != "listening" && lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("the service has not started: %s", lines.Text())
		}
	}
	var rest sync.WaitGroup
	rest.Go(func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	})
	t.Cleanup(func() {
		_ = service.Process.Signal(syscall.SIGTERM) // it may have ended
		rest.Wait()
		if err := service.Wait(); err != nil {
			t.Errorf("the service has ended with %v", err)
		}
	})
	if line.Msg != "listening" {
		t.Fatal("the service has ended without listening")
	}
	go loopback.Relay(front, line.Address)
	return endpoints{url, idp.URL}
}

// writeKeys returns a directory with a key of each algorithm.
func writeKeys(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string, err error) {
		t.Helper()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".key"), []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	encode := func(key any) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	write("rsa", encode(rsaKey), nil)
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		write(strings.ToLower(curve.Params().Name), encode(key), nil)
	}
	small, err := ocrypto.NewMLKEMKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	text, err := small.PrivateKeyInPemFormat()
	write("mlkem-768", text, err)
	large, err := ocrypto.NewMLKEM1024KeyPair()
	if err != nil {
		t.Fatal(err)
	}
	text, err = large.PrivateKeyInPemFormat()
	write("mlkem-1024", text, err)
	hybrid, err := ocrypto.NewXWingKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	text, err = hybrid.PrivateKeyInPemFormat()
	write("x-wing", text, err)
	return dir
}
