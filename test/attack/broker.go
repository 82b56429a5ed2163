// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/test/controlgroup"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// Time limits that are reached only if something fails.
const (
	startLimit = 30 * time.Second
	stopLimit  = 20 * time.Second
)

// maxLog is the maximum number of lines of a broker's log that are kept: the first ones.
const maxLog = 200

// profiles is the profile file of the broker.
//
//go:embed profiles.yaml
var profiles []byte

// programs are the programs to run, and a folder for their files.
type programs struct {
	dir    string
	broker string
	// controllers are the controllers of the broker's control group.
	controllers []controlgroup.Controller
	// apart is the other caller's own control group; nil if it has none.
	apart *controlgroup.Group
}

// prepare builds the broker, unless --broker names one, and raises this program's limit of
// open files.
func prepare(ctx context.Context, o options) (_ *programs, err error) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return nil, err
	}
	files.Cur = files.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return nil, fmt.Errorf("allow this program more open files: %w", err)
	}
	if files.Max < 2*idleConnections {
		return nil, fmt.Errorf("a process may have %d open files, expected at least %d: raise the hard limit", files.Max, 2*idleConnections)
	}
	dir, err := os.MkdirTemp("", "attack") // a path that is short enough for sockets
	if err != nil {
		return nil, err
	}
	p := &programs{dir: dir, broker: o.broker, controllers: []controlgroup.Controller{controlgroup.Memory}}
	if p.broker != "" {
		p.broker, err = filepath.Abs(p.broker)
		return p, err
	}
	runner.Progress("building the broker")
	p.broker = filepath.Join(dir, "broker")
	if err := runner.Build(ctx, o.root, p.broker, "./cmd/broker"); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

func (p *programs) remove() error { return os.RemoveAll(p.dir) }

// broker is a running broker in its own control group.
type broker struct {
	*controlgroup.Group
	dir    string
	status string // address of the status port
	cmd    *exec.Cmd
	exited chan struct{}

	mu  sync.Mutex
	log []string
}

// startBroker starts a broker and waits until it listens.
func startBroker(ctx context.Context, o options, p *programs) (_ *broker, err error) {
	b := &broker{exited: make(chan struct{})}
	if b.dir, err = os.MkdirTemp(p.dir, "b"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "Profiles.yaml"), profiles, 0o644); err != nil {
		return nil, err
	}
	if b.Group, err = controlgroup.New(p.controllers...); err != nil {
		return nil, err
	}
	if err := b.Limit(o.limit); err != nil {
		return nil, errors.Join(err, b.Remove())
	}
	line := b.Command(p.broker,
		"--profiles-dir", b.dir, "--socket-dir", filepath.Join(b.dir, "s"), "--callers", "a,b", "--status-address", "127.0.0.1:0")
	b.cmd = exec.Command(line[0], line[1:]...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CRYPTO_BROKER_") && !strings.HasPrefix(variable, "OTEL_") {
			b.cmd.Env = append(b.cmd.Env, variable)
		}
	}
	// The kernel ends the broker with this program, however this program ends.
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := b.cmd.StderrPipe()
	if err != nil {
		return nil, errors.Join(err, b.Remove())
	}
	if err := b.cmd.Start(); err != nil {
		return nil, errors.Join(err, b.Remove())
	}
	listening := make(chan string, 1)
	go func() {
		defer close(b.exited)
		b.read(output, listening)
		_ = b.cmd.Wait() // the state of the process has the reason
	}()
	select {
	case b.status = <-listening:
		return b, nil
	case <-b.exited:
		err = fmt.Errorf("the broker ended while it started: %s\n%s", b.cmd.ProcessState, strings.Join(b.lines(), "\n"))
	case <-time.After(startLimit):
		err = fmt.Errorf("the broker does not listen after %s", startLimit)
	case <-ctx.Done():
		err = ctx.Err()
	}
	_, stopped := b.stop()
	return nil, errors.Join(err, stopped)
}

// read keeps the first lines of the log, and sends the address of the status port.
func (b *broker) read(output io.Reader, listening chan<- string) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		b.mu.Lock()
		if len(b.log) < maxLog {
			b.log = append(b.log, lines.Text())
		}
		b.mu.Unlock()
		var line struct{ Msg, Status string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			listening <- line.Status
		}
	}
	_, _ = io.Copy(io.Discard, output) // a line that is too long
}

func (b *broker) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.log...)
}

func (b *broker) socket(caller string) string {
	return filepath.Join(b.dir, "s", caller, "crypto-broker-server.sock")
}

// isRunning reports whether the process is still running.
func (b *broker) isRunning() bool {
	select {
	case <-b.exited:
		return false
	default:
		return true
	}
}

// stop ends the broker and removes its folder and its group. It kills a broker that does
// not end in time, and then slow is true.
func (b *broker) stop() (slow bool, err error) {
	err = b.cmd.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	select {
	case <-b.exited:
	case <-time.After(stopLimit):
		_ = b.cmd.Process.Kill()
		<-b.exited
		slow = true
	}
	return slow, errors.Join(err, os.RemoveAll(b.dir), b.Remove())
}
