// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// profiles is the profile file of the broker.
const profiles = "- {Name: Default, API: {HashData: {HashAlg: sha-256}}}\n"

// broker is a running broker.
type broker struct {
	folder, socket string
	cmd            *exec.Cmd
}

// startBroker builds a broker and starts it. It returns once the broker takes connections.
func startBroker(ctx context.Context, repository string) (_ *broker, err error) {
	b := &broker{}
	if b.folder, err = os.MkdirTemp("", "clients"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop())
		}
	}()
	binary := filepath.Join(b.folder, "broker")
	if _, err := environment.Command(ctx, repository, os.Stderr, "go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", binary, "./cmd/broker"); err != nil {
		return nil, err
	}
	folder := filepath.Join(b.folder, "profiles")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "Profiles.yaml"), []byte(profiles), 0o600)); err != nil {
		return nil, err
	}
	b.socket = filepath.Join(b.folder, "s", "crypto-broker-server.sock")
	b.cmd = exec.CommandContext(ctx, binary, "--profiles-dir", folder, "--socket-dir", filepath.Dir(b.socket), "--log-level", "warn")
	b.cmd.Env = []string{} // no variable of this machine changes what is measured
	b.cmd.Stdout, b.cmd.Stderr = os.Stderr, os.Stderr
	if err := b.cmd.Start(); err != nil {
		b.cmd = nil
		return nil, err
	}
	return b, runner.AwaitServer(ctx, "unix", b.socket)
}

// stop ends the broker, which has nothing to lose, and removes its files.
func (b *broker) stop() error {
	if b.cmd != nil {
		_ = b.cmd.Process.Signal(syscall.SIGKILL)
		_ = b.cmd.Wait() // it says that the process was killed
	}
	return os.RemoveAll(b.folder)
}
