// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
)

// readyTime is how long a program may take to start and to end, on a busy machine too.
const readyTime = 2 * time.Minute

// process is a running Prometheus or Alertmanager.
type process struct {
	// URL is the address of its HTTP API, on the loopback interface.
	URL     string
	name    string
	command *exec.Cmd
	exited  chan error
	log     *os.File
}

// startProcess runs a program with its log in a folder, and waits until it is ready.
func startProcess(ctx context.Context, name, program, folder string, arguments ...string) (*process, error) {
	address, err := loopback.Reserve("127.0.0.1")
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(folder, name+".log"))
	if err != nil {
		return nil, err
	}
	p := &process{URL: "http://" + address, name: name, exited: make(chan error, 1), log: log}
	p.command = exec.Command(program, append(arguments, "--web.listen-address="+address)...)
	p.command.Stdout, p.command.Stderr = log, log
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go func() { p.exited <- p.command.Wait() }()
	if err := p.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/-/ready", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("it answers %s", response.Status)
		}
		select {
		case exit := <-p.exited:
			p.exited <- exit
			return errors.Join(fmt.Errorf("%s ended: %s", p.name, p.lastLog()), exit)
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready within %s: %w: %s", p.name, readyTime, err, p.lastLog())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// lastLog returns the end of the log.
func (p *process) lastLog() string {
	content, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(content[max(0, len(content)-2000):]))
}

// stop ends the program and waits until it has ended.
func (p *process) stop() error { return errors.Join(p.end(), p.log.Close()) }

func (p *process) end() error {
	select {
	case err := <-p.exited:
		return err // it had ended by itself
	default:
	}
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case err := <-p.exited:
		return err
	case <-time.After(readyTime):
		err := p.command.Process.Kill()
		return errors.Join(fmt.Errorf("%s did not end within %s and was killed", p.name, readyTime), err, <-p.exited)
	}
}
