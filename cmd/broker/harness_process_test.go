// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// waitLimit is far above what anything here takes; only a failure reaches it.
const waitLimit = 30 * time.Second

// binary is the program, built once as it is released: static.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "broker")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }() // without this, the system could remove the file from its temporary directory
		// Others than root run it in one of the tests.
		if err := os.Chmod(dir, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		binary = filepath.Join(dir, "broker")
		build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v1.2.3", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, output)
			return 1
		}
		return m.Run()
	}())
}

// line is a line of the log.
type line map[string]any

// process is a running broker.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of Wait, once exited is closed

	mu    sync.Mutex
	lines []line
	text  bytes.Buffer  // the lines as they are
	more  chan struct{} // closed and made again with each line
}

// environment is the environment of the test without all variables that configure the broker.
func environment(more ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CRYPTO_BROKER_") && !strings.HasPrefix(variable, "OTEL_") && !strings.HasPrefix(variable, "KUBERNETES_") {
			env = append(env, variable)
		}
	}
	return append(env, more...)
}

// start runs a broker until the test ends.
func start(t testing.TB, args ...string) *process {
	t.Helper()
	return startWith(t, environment(), args...)
}

func startWith(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	return startProgram(t, env, binary, args...)
}

// startProgram runs a program that becomes a broker.
func startProgram(t testing.TB, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.CommandContext(context.Background(), program, args...), exited: make(chan struct{}), more: make(chan struct{})}
	p.cmd.Env = env
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		p.read(stderr)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill(syscall.SIGKILL)
		<-p.exited
		if t.Failed() {
			for _, l := range p.log() {
				t.Log(l)
			}
		}
	})
	return p
}

func (p *process) read(stderr io.Reader) {
	scanner := bufio.NewScanner(stderr)
	for scanner.Scan() {
		l := line{}
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			l = line{"msg": scanner.Text()} // the message of a failed start is not a log line
		}
		p.mu.Lock()
		p.lines = append(p.lines, l)
		p.text.Write(append(scanner.Bytes(), '\n'))
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

func (p *process) log() []line {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]line(nil), p.lines...)
}

// raw returns the log as it is.
func (p *process) raw() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.text.Bytes())
}

// logged waits for the n-th line with a message.
func (p *process) logged(message string, n int) line {
	p.t.Helper()
	deadline := time.After(waitLimit)
	for {
		p.mu.Lock()
		more, found := p.more, 0
		for _, l := range p.lines {
			if l["msg"] == message {
				if found++; found == n {
					p.mu.Unlock()
					return l
				}
			}
		}
		p.mu.Unlock()
		select {
		case <-more:
		case <-deadline:
			p.t.Fatalf("%q was not logged %d times", message, n)
		}
	}
}

// listening waits until it listens and returns the address of the status port.
func (p *process) listening() string {
	p.t.Helper()
	address, _ := p.logged("listening", 1)["status"].(string)
	return address
}

func (p *process) kill(signal syscall.Signal) {
	// It may have ended already.
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
}

// stop ends the broker and waits for its end.
func (p *process) stop() {
	p.kill(syscall.SIGTERM)
	<-p.exited
}

// ends waits for the end and checks the exit code.
func (p *process) ends(code int) {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(waitLimit):
		p.t.Fatal("does not end")
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d (%v), want %d", got, p.err, code)
	}
}

// run runs the program to its end.
func run(t testing.TB, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// place is where a broker has its profiles and its sockets.
type place struct {
	t                 testing.TB
	profiles, sockets string
}

func newPlace(t testing.TB, algorithm string) *place {
	t.Helper()
	// The directory of the test would make the sockets' paths too long.
	dir, err := os.MkdirTemp("", "broker")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p := &place{t, filepath.Join(dir, "profiles"), filepath.Join(dir, "sockets")}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(p.profiles, 0o755)); err != nil {
		t.Fatal(err)
	}
	if algorithm != "" {
		p.write("- Name: Default\n  API: {HashData: {HashAlg: " + algorithm + "}}\n")
	}
	return p
}

// write replaces the profiles as a whole.
func (p *place) write(content string) {
	p.t.Helper()
	name := filepath.Join(p.profiles, profile.FileName)
	if err := errors.Join(os.WriteFile(name+".new", []byte(content), 0o644), os.Rename(name+".new", name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) args(more ...string) []string {
	return append([]string{"--profiles-dir", p.profiles, "--socket-dir", p.sockets, "--status-address", "127.0.0.1:0"}, more...)
}

func (p *place) socket(caller string) string {
	return filepath.Join(p.sockets, caller, contract.SocketFile)
}

// connect makes a client that connects again by itself, as all clients do.
func connect(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// get asks the status port.
func get(t testing.TB, address, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: waitLimit, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
