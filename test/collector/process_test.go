// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
)

// process is a program that runs until the test ends.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout output
	stderr output
	exited chan struct{}
}

// output is the output of a program, which can be read while the program runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed and made again with each write
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func start(t *testing.T, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.CommandContext(context.Background(), program, args...), exited: make(chan struct{})}
	p.stdout.more, p.stderr.more = make(chan struct{}), make(chan struct{})
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = &p.stdout, &p.stderr, env
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // tests check the exit code where it matters
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.exited
		if t.Failed() {
			t.Logf("%s wrote\n%s", filepath.Base(program), p.stderr.String())
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
}

// stop ends the program gracefully and returns how long that took.
func (p *process) stop() time.Duration {
	p.t.Helper()
	began := time.Now()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(waitLimit):
		p.t.Fatal("does not end")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("exit code %d", code)
	}
	return time.Since(began)
}

// awaitOutput waits until the output contains a text.
func (p *process) awaitOutput(o *output, text string) {
	p.t.Helper()
	deadline := time.After(waitLimit)
	for {
		o.mu.Lock()
		more, found := o.more, strings.Contains(o.text.String(), text)
		o.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-p.exited:
			p.t.Fatalf("ended without writing %q", text)
		case <-deadline:
			p.t.Fatalf("did not write %q", text)
		}
	}
}

// broker is a running broker.
type broker struct {
	*process
	socket string
}

// startBroker runs a broker with these variables.
func startBroker(t *testing.T, variables []string, args ...string) *broker {
	t.Helper()
	return startBrokerWith(t, profiles, variables, args...)
}

// startBrokerWith runs a broker with these profiles.
func startBrokerWith(t *testing.T, profiles string, variables []string, args ...string) *broker {
	t.Helper()
	dir, err := os.MkdirTemp("", "traces") // short, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "Profiles.yaml"), []byte(profiles), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--profiles-dir", dir, "--socket-dir", filepath.Join(dir, "s"), "--callers", "app", "--status-address", "127.0.0.1:0"}, args...)
	if tlsProvider != "" {
		variables = append(slices.Clone(variables), "CRYPTO_BROKER_TLS_PROVIDER="+tlsProvider)
	}
	b := &broker{start(t, variables, brokerProgram, args...), filepath.Join(dir, "s", "app", "crypto-broker-server.sock")}
	b.awaitOutput(&b.stderr, `"msg":"listening"`)
	return b
}

func (b *broker) connect() *grpc.ClientConn {
	b.t.Helper()
	conn, err := grpc.NewClient("unix://"+b.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// collector is a running collector that passes spans on to a sink.
type collector struct {
	*process
	grpc, http string // host:port
}

// startCollector runs a collector. security is how its receivers are set up for
// TLS, in YAML, or empty.
func startCollector(t *testing.T, to *sink, security string) *collector {
	t.Helper()
	c := &collector{grpc: reserve(t), http: reserve(t)}
	config := fmt.Sprintf(`
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "%s"%s}
      http: {endpoint: "%s"%s}
exporters:
  otlp_http: {endpoint: "%s", encoding: json, compression: none, sending_queue: {enabled: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_http]}
`, c.grpc, security, c.http, security, to.URL)
	c.process = start(t, []string{}, collectorProgram, "--config=yaml:"+config)
	c.awaitOutput(&c.stderr, "Everything is ready")
	return c
}

// reserve returns an address that no other program gets.
func reserve(t *testing.T) string {
	t.Helper()
	address, err := loopback.Reserve("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return address
}
