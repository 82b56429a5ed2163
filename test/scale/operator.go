// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/controlgroup"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// Time limits that are reached only if something fails.
const (
	readyLimit = 2 * time.Minute
	stopLimit  = time.Minute
)

// operator is the operator as a process, started as its Deployment says.
type operator struct {
	installation *installation
	program      string
	log          string              // path of a file
	group        *controlgroup.Group // nil if this machine does not allow control groups
	command      *exec.Cmd
	exited       chan struct{}
	failure      error // of its end, once exited is closed
}

// newOperator returns an operator that does not run yet, in a control group with the
// memory limit of its container.
func newOperator(i *installation, dir, programs string) (*operator, error) {
	o := &operator{installation: i, program: filepath.Join(programs, operatorProgram), log: filepath.Join(dir, "operator.log")}
	group, err := controlgroup.New(controlgroup.Memory)
	if err != nil {
		runner.Progress("the operator has no memory limit but GOMEMLIMIT: %v", err)
		return o, nil
	}
	o.group = group
	return o, group.Limit(i.container().Resources.Limits.Memory().Value())
}

// start starts the operator and waits until it is ready.
func (o *operator) start(ctx context.Context) error {
	line := append([]string{o.program}, o.installation.container().Args...)
	if o.group != nil {
		line = o.group.Command(line...)
	}
	//nolint:gosec // the program was just built
	o.command = exec.Command(line[0], line[1:]...)
	o.command.Env = o.installation.variables()
	// The kernel ends the process with this program, however this program ends.
	o.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(o.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	o.command.Stdout, o.command.Stderr = log, log
	if err := o.command.Start(); err != nil {
		return err
	}
	o.exited = make(chan struct{})
	go func() {
		o.failure = o.command.Wait()
		close(o.exited)
	}()
	return o.awaitReady(ctx)
}

// awaitReady waits until the operator answers its readiness probe.
func (o *operator) awaitReady(ctx context.Context) error {
	port, err := o.installation.port("health")
	if err != nil {
		return err
	}
	return runner.Eventually(ctx, readyLimit, "the operator is ready", func(ctx context.Context) error {
		select {
		case <-o.exited:
			return fmt.Errorf("the operator ended: %w", errors.Join(o.failure, o.lastWords()))
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz has the status %d", response.StatusCode)
		}
		return nil
	})
}

// stop ends the operator as a kubelet does.
func (o *operator) stop() error {
	if o.command == nil || o.command.Process == nil {
		return nil
	}
	if err := o.command.Process.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(fmt.Errorf("the operator ended before it was asked to: %w", err), o.lastWords())
	}
	select {
	case <-o.exited:
		o.command = nil
		return o.failure
	case <-time.After(stopLimit):
		_ = o.command.Process.Kill()
		<-o.exited
		return fmt.Errorf("the operator had to be killed: it did not stop within %s", stopLimit)
	}
}

// remove removes the control group.
func (o *operator) remove() error {
	if o.group == nil {
		return nil
	}
	return o.group.Remove()
}

// errorLines returns the lines of the log with errors.
func (o *operator) errorLines() ([]string, error) {
	text, err := os.ReadFile(o.log)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range bytes.Lines(text) {
		// A request for the lease that is under way when the operator ends is logged as an error.
		ended := bytes.Contains(line, []byte(`"logger":"leaderelection"`)) && bytes.Contains(line, []byte(`"error":"context canceled"`))
		if bytes.Contains(line, []byte(`"level":"ERROR"`)) && !ended || bytes.Contains(line, []byte("panic: ")) {
			lines = append(lines, strings.TrimSpace(string(line)))
		}
	}
	return lines, nil
}

// lastWords returns an error with the last lines of the operator's log.
func (o *operator) lastWords() error {
	const most = 4 << 10
	text, err := os.ReadFile(o.log)
	if err != nil {
		return err
	}
	return fmt.Errorf("the end of the operator's log:\n%s", text[max(0, len(text)-most):])
}
