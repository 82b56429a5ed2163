// SPDX-License-Identifier: Apache-2.0

//go:build !apiserver

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// A process cannot undo the limit of core dumps, so each command of this test has its own process. The process ends because it has
// no cluster, no directory for its socket, or no keys. With the tag apiserver, each of these processes would start an API server.
func TestTheMemoryOfAGatewayIsNoPartOfADump(t *testing.T) {
	const variable = "GATEWAY_WITHOUT_DUMPS"
	command := os.Getenv(variable)
	if command == "" {
		for _, command := range []string{"gateway", "kms", keyAccessCommand} {
			gateway := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
			gateway.Env = append(os.Environ(), variable+"="+command, "KUBECONFIG="+filepath.Join(t.TempDir(), "none"))
			if output, err := gateway.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", command, err, output)
			}
		}
		return
	}
	dir := t.TempDir()
	args := map[string][]string{
		"gateway":        {"--certificate-dir=/certificates", "--trusted-keys-file=" + write(t, filepath.Join(dir, "keys"), public(1)+"\n"), "--operator-namespace=crypto-broker-system"},
		"kms":            {"kms", "--key=bao/secrets", "--key-providers-dir=" + dir, "--status-bind-address=0", "--socket-dir=" + filepath.Join(write(t, filepath.Join(dir, "file"), ""), "socket")},
		keyAccessCommand: {keyAccessCommand, "--config", keyAccessConfig(t, "https://issuer.example.com", "keyDir: ", "keyDir: "+filepath.Join(dir, "none")+" # ")},
	}[command]
	if code := run(t.Context(), args, noVariables, io.Discard, os.Stderr); code != program.ExitFailed {
		t.Fatalf("exit code %d, want %d", code, program.ExitFailed)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil || limit.Cur != 0 || limit.Max != 0 {
		t.Errorf("the limit of core dumps is %+v, %v, want 0", limit, err)
	}
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || dumpable != 0 {
		t.Errorf("the process is dumpable: %d, %v", dumpable, err)
	}
}
