// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
)

func TestVersionIsThatOfTheBuild(t *testing.T) {
	want := fmt.Sprintf("broker v1.2.3 %s %s/%s\nGo Cryptographic Module latest, FIPS 140-3 mode off, not enforced\nTLS of connections to others: Go Cryptographic Module latest, FIPS 140-3 mode off\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if code, stdout, _ := run(t, environment(), "version"); code != 0 || stdout != want {
		t.Errorf("got %d %q, want %q", code, stdout, want)
	}
}

func TestAFlagComesBeforeItsVariable(t *testing.T) {
	at := newPlace(t, "sha-256")
	env := environment(
		"CRYPTO_BROKER_PROFILES_DIR="+at.profiles, "CRYPTO_BROKER_SOCKET_DIR=/nowhere", "CRYPTO_BROKER_CALLERS=app",
		"CRYPTO_BROKER_STATUS_ADDRESS=127.0.0.1:0", "CRYPTO_BROKER_LOG_LEVEL=", // empty is not set
	)
	startWith(t, env, "--socket-dir", at.sockets).listening()
	if code, _, stderr := run(t, env, "health", "--socket-dir", at.sockets); code != 0 {
		t.Errorf("health: %d %q", code, stderr)
	}
}

func TestAStatusPortThatIsTakenIsNamed(t *testing.T) {
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	at := newPlace(t, "sha-256")
	address := taken.Addr().String()
	code, _, stderr := run(t, environment(), "--profiles-dir", at.profiles, "--socket-dir", at.sockets, "--status-address", address, "--log-level", "error")
	if want := "broker: open the status port " + address + ": "; code != 1 || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "address already in use") {
		t.Errorf("got %d %q, want %q", code, stderr, want)
	}
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	at := newPlace(t, "")
	code, _, stderr := run(t, environment(), "health", "--socket", at.socket(""))
	if want := "broker: the broker at " + at.socket("") + " does not answer: "; code != 1 || !strings.HasPrefix(stderr, want) {
		t.Errorf("got %d %q, want %q", code, stderr, want)
	}
}
