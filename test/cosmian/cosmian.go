// SPDX-License-Identifier: Apache-2.0

// Package cosmian starts KMIP servers for tests: Cosmian KMS, a program in Rust.
package cosmian

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
)

// Version is the version of Cosmian KMS.
const Version = "5.28.0"

const (
	host = "127.0.0.1"
	// webHost is where a server has its web interface, which tests do not use. It is another address
	// than host, so that the port of KMIP can be told from the port of the interface.
	webHost = "127.0.0.2"
)

var product = kmipserver.Product{
	Name: "Cosmian KMS", Run: run,
	Count: "import sqlite3, sys; print(sqlite3.connect(sys.argv[1] + '/keys/kms.db').execute(" +
		"\"SELECT COUNT(*) FROM objects WHERE state NOT LIKE 'Destroyed%'\").fetchone()[0])",
}

// Start starts servers on the loopback interface, which end with the test. The program has to be
// built before, by "hack/cosmian/build".
func Start(t testing.TB, servers int) *kmipserver.Servers {
	t.Helper()
	return kmipserver.Start(t, product, host, servers)
}

// Folder returns the folder with the program. The error is [fs.ErrNotExist] if it is not built.
func Folder() (string, error) {
	repository, err := environment.Repository()
	if err != nil {
		return "", err
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "cosmian-"+Version)
	_, err = os.Stat(folder)
	return folder, err
}

func run(t testing.TB, s *kmipserver.Servers, port string) (process *exec.Cmd, at string) {
	t.Helper()
	folder, err := Folder()
	if err != nil {
		t.Fatalf("Cosmian KMS is not built, run hack/cosmian/build: %v", err)
	}
	log, err := os.OpenFile(s.File("server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the server has its own copy
	cmd := exec.Command(filepath.Join(folder, "cosmian_kms"),
		"--database-type", "sqlite", "--sqlite-path", s.File("keys"), "--root-data-path", s.Folder, "--tmp-path", s.Folder,
		"--tls-cert-file", s.File("server.crt"), "--tls-key-file", s.File("server.key"), "--clients-ca-cert-file", s.Authority,
		"--socket-server-start", "--socket-server-hostname", s.Host, "--socket-server-port", port, "--hostname", webHost, "--port", "0")
	cmd.Env = append(os.Environ(), "HOME="+s.Folder, "RUST_LOG=warn",
		"OPENSSL_CONF="+filepath.Join(folder, "openssl.cnf"), "OPENSSL_MODULES="+filepath.Join(folder, "modules"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Folder, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		at, err := listening(cmd.Process.Pid, s.Host)
		if at != "" {
			return cmd, at
		}
		if err != nil || hasEnded(cmd.Process.Pid) || t.Context().Err() != nil {
			kmipserver.End(t, cmd)
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("Cosmian KMS did not start: %v\n%s", err, text)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// hasEnded reports whether a process that nobody has waited for has ended.
func hasEnded(process int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(status), ") ")
	return strings.HasPrefix(state, "Z")
}

// listening returns the TCP port that a process listens at, at an IPv4 address of this machine. It
// is empty if the process does not listen there.
func listening(process int, host string) (string, error) {
	folder := fmt.Sprintf("/proc/%d/fd", process)
	files, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	sockets := map[string]bool{}
	for _, file := range files {
		if target, err := os.Readlink(filepath.Join(folder, file.Name())); err == nil { // the address is empty if the port was closed
			sockets[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	defer func() { _ = table.Close() }()
	ip := net.ParseIP(host).To4()
	address := fmt.Sprintf("%02X%02X%02X%02X:", ip[3], ip[2], ip[1], ip[0])
	const listens = "0A"
	for lines := bufio.NewScanner(table); lines.Scan(); {
		// The number, the local and the remote address, the state, five more, the number of the socket.
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasPrefix(fields[1], address) && fields[3] == listens && sockets[fields[9]] {
			port, err := strconv.ParseUint(strings.TrimPrefix(fields[1], address), 16, 16)
			return strconv.FormatUint(port, 10), err
		}
	}
	return "", nil
}
