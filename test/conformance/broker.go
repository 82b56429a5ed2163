// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// Time limits that are reached only if something fails.
const (
	startLimit = time.Minute
	stopLimit  = 30 * time.Second
)

// broker is a running broker.
type broker struct {
	version string // of the source and the cryptographic module
	socket  string
	dir     string // folder of all its files
	cmd     *exec.Cmd
	exited  chan struct{}
	err     error // of its end, once exited is closed
}

// logLine has the fields of a line of the broker's log that matter here.
type logLine struct {
	Message  string   `json:"msg"`
	Profile  string   `json:"profile"`
	Served   int      `json:"served"`
	Rejected int      `json:"rejected"`
	Sockets  []string `json:"sockets"`
}

// startBroker builds the broker, runs it with the profiles, and waits until it
// serves exactly the profiles that it should serve.
func startBroker(ctx context.Context, root string, profiles *profileSet) (_ *broker, err error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return nil, err
	}
	b := &broker{dir: dir, exited: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop())
		}
	}()
	program := filepath.Join(dir, "broker")
	if err := runner.Build(ctx, root, program, "./cmd/broker"); err != nil {
		return nil, err
	}
	if b.version, err = versionOf(ctx, root); err != nil {
		return nil, err
	}
	for _, folder := range []string{"profiles", "sockets", "keys"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "profiles", "Profiles.yaml"), []byte(profiles.file()), 0o644); err != nil {
		return nil, err
	}
	for name, content := range profiles.keys {
		if err := os.WriteFile(filepath.Join(dir, "keys", name), content, 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(program, "--profiles-dir", filepath.Join(dir, "profiles"), "--socket-dir", filepath.Join(dir, "sockets"), "--keys-dir", filepath.Join(dir, "keys"))
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CRYPTO_BROKER_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	b.cmd = cmd
	lines := make(chan logLine, 1000)
	go func() {
		defer close(b.exited)
		scanner := bufio.NewScanner(log)
		for scanner.Scan() {
			var line logLine
			if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
				line.Message = scanner.Text() // the message of a failed start is not JSON
			}
			select {
			case lines <- line:
			default: // nobody waits for further lines
			}
		}
		b.err = cmd.Wait()
	}()
	return b, b.serves(ctx, lines, profiles)
}

// serves waits until the broker listens with all profiles that it should serve.
func (b *broker) serves(ctx context.Context, lines <-chan logLine, profiles *profileSet) error {
	deadline := time.After(startLimit)
	named := map[string]bool{}
	loaded, last := logLine{}, ""
	for b.socket == "" || loaded.Message == "" || len(named) < loaded.Rejected {
		select {
		case line := <-lines:
			switch last = line.Message; line.Message {
			case "profiles loaded":
				loaded = line
			case "problem with a profile":
				named[line.Profile] = true
			case "listening":
				b.socket = line.Sockets[0]
			}
		case <-b.exited:
			return fmt.Errorf("the broker ended at its start with %q: %w", last, b.err)
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("the broker does not serve after %s; its last words were %q", startLimit, last)
		}
	}
	unserved := slices.Sorted(maps.Keys(profiles.unserved))
	if found := slices.Sorted(maps.Keys(named)); !slices.Equal(found, unserved) {
		return fmt.Errorf("the broker rejects the profiles %q, expected %q", found, unserved)
	}
	if want := len(profiles.served) + profiles.expect; loaded.Served != want {
		return fmt.Errorf("the broker serves %d profiles, expected %d", loaded.Served, want)
	}
	return nil
}

// versionOf returns the version of the source, of Go and of the module that [runner.Build] builds with.
func versionOf(ctx context.Context, root string) (string, error) {
	version, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return "", fmt.Errorf("ask Go for its version: %w", err)
	}
	return fmt.Sprintf("version %s, %s, Go Cryptographic Module %s", runner.Version(root), strings.TrimSpace(string(version)), runner.Module), nil
}

// stop ends the broker and removes its files. It returns an error if the broker fails at
// its end.
func (b *broker) stop() error {
	defer os.RemoveAll(b.dir)
	if b.cmd == nil {
		return nil
	}
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the broker: %w", err)
	}
	select {
	case <-b.exited:
	case <-time.After(stopLimit):
		return errors.Join(fmt.Errorf("the broker did not end within %s of SIGTERM", stopLimit), b.cmd.Process.Kill())
	}
	if b.err != nil {
		return fmt.Errorf("the broker ended badly: %w", b.err)
	}
	return nil
}
