// SPDX-License-Identifier: Apache-2.0

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

// A process cannot take its limit back, so the gateway of this test is a process of its own. It
// ends because it has no cluster.
func TestTheMemoryOfAGatewayIsNoPartOfADump(t *testing.T) {
	const variable = "GATEWAY_WITHOUT_DUMPS"
	if os.Getenv(variable) == "" {
		gateway := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		gateway.Env = append(os.Environ(), variable+"=1", "KUBECONFIG="+filepath.Join(t.TempDir(), "none"))
		if output, err := gateway.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	keys := write(t, filepath.Join(t.TempDir(), "keys"), public(1)+"\n")
	args := []string{"--certificate-dir=/certificates", "--trusted-keys-file=" + keys, "--operator-namespace=crypto-broker-system"}
	if code := run(t.Context(), args, nothing, io.Discard, io.Discard); code != program.ExitFailed {
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
