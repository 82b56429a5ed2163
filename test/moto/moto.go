// SPDX-License-Identifier: Apache-2.0

// Package moto starts a server for tests that answers like AWS: moto, on a port of the
// loopback interface that is free. Unlike AWS, it hashes a digest before it signs it, and has no
// operations with private keys but signatures; serve.py corrects that.
package moto

import (
	"bufio"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

//go:embed serve.py
var script string

// Start starts a server, which ends with the test, and returns its URL. The first use of a cache
// installs moto with pip.
func Start(t testing.TB) string {
	t.Helper()
	packages, err := environment.PythonPackage{Name: "moto", Version: "5.2.5", Also: []string{"flask", "flask-cors"}}.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "serve.py")
	if err := os.WriteFile(program, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", program)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONWARNINGS=ignore")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("moto did not start: %v\n%s", err, stderr.String())
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}
