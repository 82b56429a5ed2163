// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// programsVariable has the folder with the built programs, in the process that measures.
const programsVariable = "CRYPTO_BROKER_SCALE_PROGRAMS"

// Networks that are local in the network namespace of this program: addresses of pods and of Services. The operator does not ask
// brokers at loopback addresses, so pods need other ones.
const (
	podNetwork     = "10.128.0.0/9"
	serviceNetwork = "10.0.0.0/24"
	// apiServerAddress is the address that the API server advertises, although it listens only on loopback. Without a default route
	// it would find no address.
	apiServerAddress = "10.255.255.1"
)

// maxPods is how many pods have addresses of their own.
const maxPods = 60_000

// addressOf returns the address of a pod, by its number from 0.
func addressOf(pod int) netip.Addr {
	n := pod + 1
	return netip.AddrFrom4([4]byte{10, 128, byte(n >> 8), byte(n)})
}

// inOwnNetwork builds the programs and runs this program once more, in a network
// namespace in which each pod has an address. Without root it needs the right to make user
// namespaces.
func inOwnNetwork(ctx context.Context, args []string) (err error) {
	dir, err := os.MkdirTemp("", "scale-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := build(ctx, dir); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	//nolint:gosec // this program
	inside := exec.CommandContext(ctx, self, args...)
	inside.Env = append(os.Environ(), programsVariable+"="+dir)
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	// The program stops its processes when it is asked to end.
	inside.Cancel = func() error { return inside.Process.Signal(syscall.SIGTERM) }
	inside.WaitDelay = time.Minute
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	if os.Getuid() != 0 {
		inside.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		inside.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		inside.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err := inside.Start(); err != nil {
		return fmt.Errorf("a network namespace is needed and cannot be made: run this as root, or allow user namespaces: %w", err)
	}
	if err := inside.Wait(); err != nil {
		return fmt.Errorf("the measurement failed: %w", err)
	}
	return nil
}

// build builds the operator as images have it, and helm.
func build(ctx context.Context, dir string) error {
	root, err := environment.Repository()
	if err != nil {
		return err
	}
	runner.Progress("builds the operator")
	if err := runner.Build(ctx, root, filepath.Join(dir, operatorProgram), "./cmd/operator"); err != nil {
		return err
	}
	helm, err := environment.Command(ctx, "", os.Stderr, filepath.Join(root, "hack", "tools", "build"), "helm")
	if err != nil {
		return err
	}
	path, err := filepath.Abs(strings.TrimSpace(helm))
	if err != nil {
		return err
	}
	return os.Symlink(path, filepath.Join(dir, helmProgram))
}

// setUpNetwork makes the addresses of pods and Services local.
func setUpNetwork(ctx context.Context) error {
	for _, arguments := range [][]string{
		{"link", "set", "lo", "up"},
		{"route", "add", "local", podNetwork, "dev", "lo"},
		{"route", "add", "local", serviceNetwork, "dev", "lo"},
	} {
		if _, err := environment.Command(ctx, "", nil, "ip", arguments...); err != nil {
			return fmt.Errorf("set up the network of the measurement: %w", err)
		}
	}
	return nil
}
