// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
)

// Limits that only a failure reaches.
const (
	startLimit = 30 * time.Second
	stopLimit  = 20 * time.Second
)

// process is a server in a process of its own.
type process struct {
	socket string
	cmd    *exec.Cmd
	dir    string
	exited chan struct{}
	err    error // of its end, once exited is closed
	tell   func(context.Context) (told, error)
	// ask ends the process.
	ask func() error
}

// startProcess runs a program whose environment says how many processors it uses.
func startProcess(o options, dir string, cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, dir: dir, exited: make(chan struct{})}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CRYPTO_BROKER_") && !strings.HasPrefix(variable, "OTEL_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	if o.procs > 0 {
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+strconv.Itoa(o.procs))
	}
	// It ends with this program, in whatever way that ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	return p, nil
}

func (p *process) run() error {
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return nil
}

// stop ends the process and waits for that. Its folder is removed.
func (p *process) stop() error {
	err := p.ask()
	select {
	case <-p.exited:
		err = errors.Join(err, p.err)
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.exited
		err = errors.Join(err, fmt.Errorf("%s had to be killed: it did not stop within %s", filepath.Base(p.cmd.Path), stopLimit))
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// startFloor runs a server that the broker is compared with, and waits until it
// listens. What it speaks is "grpc", "framed" or "multiplexed".
func startFloor(o options, programs *programs, speaks string) (*process, error) {
	dir, err := os.MkdirTemp(programs.dir, "f")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "s")
	p, err := startProcess(o, dir, exec.Command(programs.floor, speaks, socket))
	if err != nil {
		return nil, err
	}
	p.socket = socket
	input, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout = writer
	if err := errors.Join(p.run(), writer.Close()); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(output)
	read := func() (t told, err error) {
		_, err = fmt.Fscanln(lines, &t.allocations, &t.goroutines)
		return t, err
	}
	p.tell = func(context.Context) (told, error) {
		if _, err := io.WriteString(input, "\n"); err != nil {
			return told{}, err
		}
		return read()
	}
	p.ask = func() error { return errors.Join(input.Close(), output.Close()) }
	if _, err := read(); err != nil {
		return nil, errors.Join(fmt.Errorf("the bare server did not listen: %w", err), p.stop())
	}
	return p, nil
}

const (
	// caller is who calls the broker. It has a socket of its own.
	caller = "bench"
	// nobody is where spans would go. No span is sampled, so nothing connects to it.
	nobody = "http://127.0.0.1:1"
)

// everything is what the broker is started with: all that calls can have to do
// with is on. It makes the folders below dir that it names.
func everything(dir, status string) ([]string, error) {
	keys := filepath.Join(dir, "k")
	if err := os.Mkdir(keys, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(keys, "cipher.bin"), make([]byte, 32), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"--profiles-dir", dir, "--keys-dir", keys, "--socket-dir", filepath.Join(dir, "s"), "--callers", caller,
		"--status-address", status, "--log-level", "warn",
		"--traces-exporter", "otlp", "--traces-protocol", "grpc", "--traces-endpoint", nobody,
		"--traces-sampler", "parentbased_traceidratio", "--traces-sampler-arg", "0",
	}, nil
}

// startBroker runs the broker with everything on and waits until it serves. It
// returns how long that took.
func startBroker(ctx context.Context, o options, programs *programs) (_ *process, took time.Duration, err error) {
	dir, err := os.MkdirTemp(programs.dir, "b")
	if err != nil {
		return nil, 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, "Profiles.yaml"), operations.Profiles, 0o644); err != nil {
		return nil, 0, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, 0, err
	}
	arguments, err := everything(dir, address)
	if err != nil {
		return nil, 0, err
	}
	p, err := startProcess(o, dir, exec.Command(programs.broker, arguments...))
	if err != nil {
		return nil, 0, err
	}
	p.socket = filepath.Join(dir, "s", caller, "crypto-broker-server.sock")
	p.tell = func(ctx context.Context) (told, error) { return readMetrics(ctx, address) }
	p.ask = func() error {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		return nil
	}
	began := time.Now()
	if err := p.run(); err != nil {
		return nil, 0, err
	}
	if err := p.answers(ctx); err != nil {
		return nil, 0, errors.Join(err, p.stop())
	}
	return p, time.Since(began), nil
}

// answers waits until a call is answered.
func (p *process) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", p.socket)
		if err == nil {
			_ = conn.Close() // it only had to succeed
			return p.serves(ctx)
		}
		select {
		case <-p.exited:
			return fmt.Errorf("the broker ended while it started: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("the broker did not listen: %w", err)
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// serves makes one call.
func (p *process) serves(ctx context.Context) error {
	conn, err := dial(p.socket)
	if err != nil {
		return err
	}
	l, err := newLoad("hash-32", nil)
	if err == nil {
		err = unaryCall(conn, l)(ctx, 0)
	}
	return errors.Join(err, conn.Close())
}

// freeAddress finds an address for the status port. Between this and the broker's
// use of it somebody else may take it, which the broker then says.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// cpu is the time that the process has used processors.
func (p *process) cpu() (time.Duration, error) {
	// The clock of another process is its id, inverted (clock_getcpuclockid(3)).
	return processorTime(int32(^p.cmd.Process.Pid)<<3 | unix.CLOCK_PROCESS_CPUTIME_ID)
}

// processorTime reads the clock of a process.
func processorTime(clock int32) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// memory reads fields of /proc/PID/status, in bytes.
func (p *process) memory(fields ...string) ([]int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return nil, err
	}
	found := make([]int64, len(fields))
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if i := slices.Index(fields, key); i >= 0 {
			var kib int64
			if _, err := fmt.Sscan(value, &kib); err != nil {
				return nil, fmt.Errorf("/proc/PID/status has %q: %w", line, err)
			}
			found[i] = kib << 10
		}
	}
	return found, nil
}

// descriptors counts the open files.
func (p *process) descriptors() (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	return len(entries), err
}
