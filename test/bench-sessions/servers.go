// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// startTime is how long a server may take to start.
const startTime = 30 * time.Second

// server is a kind of server that is measured.
type server struct {
	name, description string
	start             func(context.Context, *programs) (*running, error)
}

const (
	nodeServer    = "Node.js and Redis"
	gatewayServer = "session gateway"
)

// servers are all kinds. The others are compared with the first one.
var servers = []server{
	{nodeServer, "[one process of Node.js](../../test/bench-sessions/node/server.mjs) with its own HTTP server and cryptography, which keeps sessions and nonces in a redis-server " +
		"beside it, as the protocol's first servers do. It answers each request itself.", startNode},
	{gatewayServer, "a broker with `--session-gateway`, and an application behind it that answers each request. That is one more request by HTTP each time.", startGateway},
	{"socket", "the calls of an application that ends HTTP itself, over the broker's socket.", startSocket},
}

// running are the processes of a server.
type running struct {
	// target are the flags of the client.
	target  []string
	folder  string
	started []*exec.Cmd
	app     *http.Server
}

func newRunning() (*running, error) {
	folder, err := os.MkdirTemp("", "sessions")
	return &running{folder: folder}, err
}

// start starts a process. Its standard error is a file in the folder.
func (r *running) start(ctx context.Context, output io.Writer, folder string, environment []string, program string, arguments ...string) error {
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Dir, cmd.Env, cmd.Stdout = folder, append(os.Environ(), environment...), output
	if err := cmd.Start(); err != nil {
		return err
	}
	r.started = append(r.started, cmd)
	return nil
}

// stop kills the processes. The servers have no data to lose.
func (r *running) stop() {
	if r.app != nil {
		_ = r.app.Close()
	}
	for _, cmd := range r.started {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait() // it says that the process was killed
	}
	_ = os.RemoveAll(r.folder)
}

// processorTime returns the processor time of all processes since their start.
func (r *running) processorTime() (sum time.Duration, err error) {
	for _, cmd := range r.started {
		took, err := measurement.ProcessorTime(cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += took
	}
	return sum, nil
}

func startNode(ctx context.Context, p *programs) (_ *running, err error) {
	r, err := newRunning()
	if err != nil {
		return nil, err
	}
	defer r.stopAfter(&err)
	socket := filepath.Join(r.folder, "redis.sock")
	if err := r.start(ctx, nil, r.folder, []string{"LD_LIBRARY_PATH=" + p.libraries}, p.redis,
		"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"); err != nil {
		return nil, err
	}
	if err := runner.AwaitServer(ctx, "unix", socket); err != nil {
		return nil, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	defer writer.Close()
	if err := r.start(ctx, writer, p.node, []string{"NODE_ENV=production"}, "node", "server.mjs", socket); err != nil {
		return nil, err
	}
	if err := reader.SetReadDeadline(time.Now().Add(startTime)); err != nil {
		return nil, err
	}
	port, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the server in Node.js printed no port: %w", err)
	}
	r.target = []string{"--url", "http://127.0.0.1:" + strings.TrimSpace(port)}
	return r, nil
}

// profiles have a small clock window, so that there is room for the nonces of a measurement.
const profiles = `
- Name: Session
  API:
    Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, ClockWindow: 5s}
`

// startBroker starts a broker and waits for its socket.
func (r *running) startBroker(ctx context.Context, p *programs, arguments ...string) (socket string, err error) {
	if err := os.WriteFile(filepath.Join(r.folder, "Profiles.yaml"), []byte(profiles), 0o600); err != nil {
		return "", err
	}
	socket = filepath.Join(r.folder, "socket", "crypto-broker-server.sock")
	arguments = append([]string{"--profiles-dir", r.folder, "--socket-dir", filepath.Dir(socket), "--log-level", "ERROR"}, arguments...)
	if err := r.start(ctx, nil, r.folder, nil, p.broker, arguments...); err != nil {
		return "", err
	}
	return socket, runner.AwaitServer(ctx, "unix", socket)
}

func startSocket(ctx context.Context, p *programs) (_ *running, err error) {
	r, err := newRunning()
	if err != nil {
		return nil, err
	}
	defer r.stopAfter(&err)
	socket, err := r.startBroker(ctx, p)
	r.target = []string{"--socket", socket, "--profile", "Session"}
	return r, err
}

// startGateway starts a broker with a session gateway, and an application that echoes requests.
func startGateway(ctx context.Context, p *programs) (_ *running, err error) {
	r, err := newRunning()
	if err != nil {
		return nil, err
	}
	defer r.stopAfter(&err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r.app = &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Minute}
	go func() { _ = r.app.Serve(listener) }() // returns when the listener is closed
	address, err := loopback.Reserve("127.0.0.1")
	if err != nil {
		return nil, err
	}
	if _, err := r.startBroker(ctx, p, "--session-gateway", address+":"+strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)); err != nil {
		return nil, err
	}
	r.target = []string{"--url", "http://" + address}
	return r, runner.AwaitServer(ctx, "tcp", address)
}

func answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// stopAfter stops everything if the server did not start.
func (r *running) stopAfter(err *error) {
	if *err != nil {
		r.stop()
	}
}

// sample is a result of the client: a record of "crypto-broker session bench".
type sample struct {
	Phase     string  `json:"phase"`
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50Ms"`
	P95       float64 `json:"p95Ms"`
	P99       float64 `json:"p99Ms"`
	Done      int     `json:"done"`
	Failed    int     `json:"failed"`
	Error     string  `json:"error"`
	// cpu is the processor time of the server for each operation.
	cpu time.Duration
}

// bench measures a server with "crypto-broker session bench".
func bench(ctx context.Context, p *programs, target []string, measured string, connections int, duration time.Duration) (sample, error) {
	arguments := append([]string{
		"session", "bench", "--output", "json", "--measure", measured, "--connections", strconv.Itoa(connections), "--duration", duration.String(),
	}, target...)
	cmd := exec.CommandContext(ctx, p.client, arguments...)
	var trouble bytes.Buffer
	cmd.Stderr = &trouble
	output, runErr := cmd.Output()
	var records []sample
	if err := json.Unmarshal(output, &records); err != nil || len(records) == 0 {
		return sample{}, errors.Join(fmt.Errorf("session bench printed no records: %s", trouble.String()), err, runErr)
	}
	return records[len(records)-1], nil // the record of all phases together
}
