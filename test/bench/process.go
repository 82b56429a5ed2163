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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/controlgroup"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// Time limits that are reached only if something fails.
const (
	startLimit = 30 * time.Second
	stopLimit  = 20 * time.Second
)

// process is a server in a process of its own.
type process struct {
	name   string
	socket string
	cmd    *exec.Cmd
	dir    string
	exited chan struct{}
	err    error // of its end, once exited is closed
	tell   func(context.Context) (reported, error)
	// ask asks the process to end.
	ask func() error
	// group is the control group that limits its memory; nil for none.
	group *controlgroup.Group
}

// newProcess returns a process of a program that uses a number of processors. It is not
// started yet.
func newProcess(o options, dir string, cmd *exec.Cmd) *process {
	p := &process{name: filepath.Base(cmd.Path), cmd: cmd, dir: dir, exited: make(chan struct{})}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CRYPTO_BROKER_") && !strings.HasPrefix(variable, "OTEL_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	if o.procs > 0 {
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+strconv.Itoa(o.procs))
	}
	// The kernel ends the process with this program, however this program ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	return p
}

// bound makes the process start in a control group with a memory limit in bytes, 0 for
// none, if this machine has control groups.
func (p *process) bound(programs *programs, limit int64) (err error) {
	if limit == 0 || !programs.grouped {
		return nil
	}
	if p.group, err = controlgroup.New(controlgroup.Memory); err != nil {
		return err
	}
	if err := p.group.Limit(limit); err != nil {
		return errors.Join(err, p.group.Remove())
	}
	p.cmd.Args = p.group.Command(p.cmd.Args...)
	p.cmd.Path = p.cmd.Args[0]
	return nil
}

func (p *process) run() error {
	if err := p.cmd.Start(); err != nil {
		if p.group != nil {
			err = errors.Join(err, p.group.Remove())
		}
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return nil
}

// stop ends the process, waits until it has ended, and removes its folder.
func (p *process) stop() error {
	err := p.ask()
	select {
	case <-p.exited:
		err = errors.Join(err, p.failure())
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.exited
		err = errors.Join(err, fmt.Errorf("%s had to be killed: it did not stop within %s", p.name, stopLimit))
	}
	return errors.Join(err, p.remove())
}

// awaitKilled waits for the end of a process that the kernel has killed.
func (p *process) awaitKilled() error {
	<-p.exited
	_ = p.ask() // closes the remaining resources; the process has ended already
	return p.remove()
}

// remove removes the folder and the control group of the process.
func (p *process) remove() error {
	var err error
	if p.group != nil {
		err = p.group.Remove()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// failure returns an error with the exit status and the log of the process, nil if it ended
// as asked.
func (p *process) failure() error {
	if p.err == nil {
		return nil
	}
	said, _ := os.ReadFile(filepath.Join(p.dir, logFile)) // the way in which it ended is the more important error
	return fmt.Errorf("%s: %w\n%s", p.name, p.err, said)
}

// startFloor starts a server with which the broker is compared, and waits until it listens.
// Its protocol is one that the program floor knows. The memory limit is in bytes, 0 for
// none.
func startFloor(o options, programs *programs, speaks string, memory int64) (*process, error) {
	dir, err := os.MkdirTemp(programs.dir, "f")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "s")
	p := newProcess(o, dir, exec.Command(programs.floor, speaks, socket))
	p.socket = socket
	if err := p.bound(programs, memory); err != nil {
		return nil, err
	}
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
	read := func() (t reported, err error) {
		_, err = fmt.Fscanln(lines, &t.allocations, &t.goroutines)
		return t, err
	}
	p.tell = func(context.Context) (reported, error) {
		if _, err := io.WriteString(input, "\n"); err != nil {
			return reported{}, err
		}
		return read()
	}
	p.ask = func() error { return errors.Join(input.Close(), output.Close()) }
	if _, err := read(); err != nil {
		return nil, errors.Join(fmt.Errorf("the bare server did not listen: %w", err), p.stop())
	}
	return p, nil
}

// answers waits until a call is answered.
func (p *process) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", p.socket)
		if err == nil {
			_ = conn.Close() // the reply does not matter
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

// cpu returns the processor time of the process.
func (p *process) cpu() (time.Duration, error) { return measurement.ProcessorTime(p.cmd.Process.Pid) }

// memory returns fields of /proc/PID/status, in bytes.
func (p *process) memory(fields ...string) ([]int64, error) {
	return measurement.ProcessMemory(p.cmd.Process.Pid, fields...)
}

// descriptors counts the open files.
func (p *process) descriptors() (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	return len(entries), err
}
