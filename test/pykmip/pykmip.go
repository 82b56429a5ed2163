// SPDX-License-Identifier: Apache-2.0

// Package pykmip starts KMIP servers for tests: PyKMIP, a package of Python.
package pykmip

import (
	"bufio"
	_ "embed"
	"encoding/hex"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
)

// Version is the version of PyKMIP.
const Version = "0.11.0"

//go:embed serve.py
var script string

var product = kmipserver.Product{
	Name: "PyKMIP", Run: run,
	Count: "import sqlite3, sys; print(sqlite3.connect(sys.argv[1] + '/keys.db').execute('SELECT COUNT(*) FROM managed_objects').fetchone()[0])",
}

// Start starts servers on the loopback interface, which end with the test. The first use of a
// cache installs PyKMIP with pip.
func Start(t testing.TB, servers int) *kmipserver.Servers {
	t.Helper()
	return StartAt(t, "127.0.0.1", servers)
}

// StartAt is Start for servers that listen at another IP address of this machine.
func StartAt(t testing.TB, host string, servers int) *kmipserver.Servers {
	t.Helper()
	return kmipserver.Start(t, product, host, servers)
}

// install returns the folder with PyKMIP and what it needs.
func install(t testing.TB) string {
	t.Helper()
	folder, err := environment.PythonPackage{Name: "pykmip", Version: Version}.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// run starts a server. It prints its port a moment before it listens.
func run(t testing.TB, s *kmipserver.Servers, port string) (process *exec.Cmd, at string) {
	t.Helper()
	packages := install(t)
	if err := os.WriteFile(s.File("serve.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	// PyKMIP is killed, so it does not remove its files. It has a Unix socket among them, whose path must be short.
	temporary, err := os.MkdirTemp("", "kmip")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(temporary); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.Command("python3", s.File("serve.py"), s.Host, port, s.Folder, s.File("keys.db"))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONWARNINGS=ignore", "TMPDIR="+temporary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // PyKMIP has several processes
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		kmipserver.End(t, cmd)
		log, _ := os.ReadFile(s.File("server.log")) // it may not exist
		t.Fatalf("PyKMIP did not start: %v\n%s\n%s", err, stderr.String(), log)
	}
	return cmd, strings.TrimSpace(line)
}

// Unwrap unwraps a key by AES key wrap (RFC 3394) with an independent implementation, the Python package cryptography, which PyKMIP
// needs.
func Unwrap(t testing.TB, wrapping, wrapped []byte) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "-c", "import sys; from cryptography.hazmat.primitives.keywrap import aes_key_unwrap; "+
		"sys.stdout.buffer.write(aes_key_unwrap(bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2])))",
		hex.EncodeToString(wrapping), hex.EncodeToString(wrapped))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+install(t))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return out
}
