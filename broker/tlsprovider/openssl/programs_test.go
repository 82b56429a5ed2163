// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// build builds the programs once, as "make build-openssl" does.
var build = sync.OnceValues(func() (folder string, err error) {
	if folder, err = os.MkdirTemp("", "openssl-programs"); err != nil {
		return "", err
	}
	built = folder
	root, err := filepath.Abs("../../..")
	if err != nil {
		return "", err
	}
	command := exec.Command("make", "--no-print-directory", "-C", root, "build-openssl", "BIN="+folder)
	output, err := command.CombinedOutput()
	if err != nil {
		err = &buildError{err, string(output)}
	}
	return folder, err
})

var built string // the folder of the programs, or empty

type buildError struct {
	cause  error
	output string
}

func (e *buildError) Error() string { return e.cause.Error() + "\n" + e.output }

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// run runs a program, and returns what it prints on both streams.
func run(t *testing.T, environment []string, program string, args ...string) (output string, succeeded bool) {
	t.Helper()
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(folder, "openssl", program), args...)
	command.Env = append(os.Environ(), environment...)
	text, err := command.CombinedOutput()
	return string(text), err == nil
}

func TestABrokerTellsWhichOpenSSLMakesItsConnections(t *testing.T) {
	module, err := openssl.LoadedModule("")
	if err != nil {
		t.Fatal(err)
	}
	for provider, want := range map[string]string{"openssl": module.Version, "go": "Go Cryptographic Module v1.0.0, FIPS 140-3 mode on", "": "Go Cryptographic Module v1.0.0, FIPS 140-3 mode on"} {
		for _, command := range []string{"version", "fips"} {
			output, succeeded := run(t, []string{"CRYPTO_BROKER_TLS_PROVIDER=" + provider}, "broker", command)
			if !succeeded || !strings.Contains(output, "\nTLS of connections to others: "+want) {
				t.Errorf("%s with %q: got %s, want %s", command, provider, output, want)
			}
		}
	}
}

func TestABrokerThatRequiresFIPSNeedsTheFIPSProviderOfOpenSSL(t *testing.T) {
	// A configuration of OpenSSL that has only the default provider.
	file := filepath.Join(t.TempDir(), "openssl.cnf")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	output, succeeded := run(t, []string{"OPENSSL_CONF=" + file}, "broker", "--require-fips", "--tls-provider=openssl", "--profiles-dir="+t.TempDir())
	if succeeded || !strings.Contains(output, "broker: --tls-provider: the TLS provider openssl has to be in FIPS 140-3 mode, and is not: found OpenSSL ") {
		t.Errorf("got %s", output)
	}
}

func TestAProgramWithoutALibraryOfOpenSSLSaysSo(t *testing.T) {
	// The loader first searches the folders of the variable. It stops at a file that is not a library.
	folder := t.TempDir()
	for _, name := range []string{"libssl.so.3", "libssl.so.1.1"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("no library"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output, succeeded := run(t, []string{"LD_LIBRARY_PATH=" + folder}, "broker", "--tls-provider=openssl", "--profiles-dir="+t.TempDir())
	if succeeded || !strings.Contains(output, "broker: --tls-provider: the TLS provider openssl cannot be used: openssl: found no library libssl.so.3") {
		t.Errorf("got %s", output)
	}
}

func TestAGatewayTellsWhichOpenSSLMakesItsConnections(t *testing.T) {
	module, err := openssl.LoadedModule("")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	key := "ed25519:" + base64.StdEncoding.EncodeToString(make([]byte, ed25519.PublicKeySize))
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	// Without a cluster it ends after that.
	output, _ := run(t, []string{"KUBECONFIG=" + file, "POD_NAMESPACE=operator"}, "gateway", "--tls-provider=openssl", "--certificate-dir=/none", "--trusted-keys-file="+file)
	if want := fmt.Sprintf(`"provider":{"provider":"openssl","version":%q`, module.Version); !strings.Contains(output, want) {
		t.Errorf("got %s, want %s", output, want)
	}
}
