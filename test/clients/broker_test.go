// SPDX-License-Identifier: Apache-2.0

//go:build clients && linux

// Package clients tests released clients with the broker as it is released. These clients know only one path of the socket. So each
// broker gets a mount namespace with its own /tmp, in which its clients run, too. That needs root.
package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// waitLimit is far above what anything here takes; only a failure reaches it.
const waitLimit = 2 * time.Minute

// workspace is a folder for what the tests make. It is not in /tmp, which
// brokers and clients do not see.
var workspace string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if err := prepareWorkspace(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(workspace)
		return m.Run()
	}())
}

// prepareWorkspace makes the workspace and builds the broker as images have it.
func prepareWorkspace() error {
	if os.Geteuid() != 0 {
		return errors.New("these tests need root, since each broker gets a mount namespace")
	}
	var err error
	if workspace, err = os.MkdirTemp("/var/tmp", "crypto-broker-clients-"); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(workspace, "broker"), "../../cmd/broker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFIPS140=v1.0.0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, output)
	}
	return nil
}

// broker is a running broker with the socket that every released client knows.
type broker struct {
	t   *testing.T
	pid int
}

// start runs a broker until the test ends and waits until it listens.
func start(t *testing.T, profiles string, keys map[string][]byte, args ...string) *broker {
	t.Helper()
	folder, err := os.MkdirTemp(workspace, "broker-")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"profiles/Profiles.yaml": []byte(profiles)}
	for name, content := range keys {
		files["keys/"+name] = content
	}
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// Each of these programs replaces itself with the next one, so that there is one process.
	args = append([]string{
		"--mount", "--propagation", "private", "sh", "-c", `mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"`, "sh",
		filepath.Join(workspace, "broker"), "--profiles-dir", filepath.Join(folder, "profiles"), "--keys-dir", filepath.Join(folder, "keys"),
	}, args...)
	process := exec.Command("unshare", args...)
	stderr, err := process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	listening, ended := make(chan struct{}), make(chan error, 1)
	var log bytes.Buffer
	go func() {
		lines := bufio.NewScanner(stderr)
		for seen := false; lines.Scan(); {
			fmt.Fprintln(&log, lines.Text())
			if !seen && strings.Contains(lines.Text(), `"msg":"listening"`) {
				seen = true
				close(listening)
			}
		}
		ended <- process.Wait()
	}()
	t.Cleanup(func() {
		if err := process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the broker ended with %v", err)
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	select {
	case <-listening:
	case err := <-ended:
		ended <- err
		t.Fatal("the broker ended before it listened")
	case <-time.After(waitLimit):
		t.Fatal("the broker does not listen")
	}
	return &broker{t, process.Process.Pid}
}

// runInNamespace runs a program in the mount namespace of the broker, and returns what
// it prints.
func (b *broker) runInNamespace(folder string, input []byte, args ...string) []byte {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), waitLimit)
	defer cancel()
	all := append([]string{"--mount", "--target", strconv.Itoa(b.pid), "--wd=" + folder}, args...)
	program := exec.CommandContext(ctx, "nsenter", all...)
	program.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	program.Stderr = &stderr
	output, err := program.Output()
	if err != nil {
		b.t.Fatalf("%v: %v\n%s%s", args, err, output, stderr.String())
	}
	return output
}

// command runs a program in a folder.
func command(t *testing.T, folder string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	program := exec.CommandContext(ctx, args[0], args[1:]...)
	program.Dir = folder
	if output, err := program.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, output)
	}
}
