// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"net"
	"strings"
	"testing"
)

// withFiles runs a broker that may have so many files open.
func withFiles(t *testing.T, at *place, limit string, args ...string) *process {
	t.Helper()
	return startProgram(t, environment(), "sh", append([]string{"-c", `ulimit -n "$1" && shift && exec "$@"`, "sh", limit, binary}, at.args(args...)...)...)
}

func TestANewSetIsTakenHoweverManyConnectionsAreKeptOpen(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := withFiles(t, at, "256", "--callers", "app,side")
	status := broker.listening()
	idle := func(network, address string) {
		conn, err := net.Dial(network, address)
		if err != nil {
			return // refused is as good as closed
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	for range 400 {
		idle("unix", at.socket("app"))
		idle("tcp", status)
	}
	at.write("- Name: Default\n  API: {HashData: {HashAlg: sha3-512}}\n")
	broker.logged("profiles loaded", 2)
	if algorithm, err := hashes(t, connect(t, at.socket("side"))); err != nil || algorithm != "sha3-512" {
		t.Errorf("the other caller got %q, %v", algorithm, err)
	}
	if code, body := get(t, status, "/readyz"); code != 200 {
		t.Errorf("/readyz: %d %q", code, body)
	}
}

func TestABrokerThatMayHaveTooFewFilesSaysSo(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := withFiles(t, at, "100")
	broker.ends(1)
	if said := broker.log(); len(said) == 0 || !strings.HasPrefix(said[len(said)-1]["msg"].(string), "broker: found a limit of 100 open files for the process, expected at least ") {
		t.Errorf("said %v", said)
	}
}
