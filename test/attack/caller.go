// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/test/controlgroup"
)

// The other caller is a process of its own, so that it does not wait for the
// goroutines of an attack. It is a second process of this program.
const (
	// callerVariable is the environment variable with the socket. If it is set, this
	// program is the other caller.
	callerVariable = "ATTACK_CALLER_SOCKET"
	// callLimit is how long a call may take, far longer than a small hash takes on a busy
	// machine.
	callLimit = 2 * time.Second
	// freshInterval is the time between two new connections of the other caller.
	freshInterval = 200 * time.Millisecond
)

// measured has the numbers and durations of the other caller's calls.
type measured struct {
	Calls, Errors int
	P50, P99, Max time.Duration
	// Fresh counts calls on new connections, and FreshErrors counts those that failed.
	Fresh, FreshErrors int
	FreshMax           time.Duration
	// Error is the first error.
	Error string
}

// observer is the process of the other caller.
type observer struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Scanner
}

// startObserver starts a process that calls through a socket until stop, in a control
// group if there is one.
func startObserver(ctx context.Context, socket string, group *controlgroup.Group) (*observer, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	line := []string{program}
	if group != nil {
		line = group.Command(program)
	}
	o := &observer{cmd: exec.CommandContext(ctx, line[0], line[1:]...)}
	o.cmd.Env = append(os.Environ(), callerVariable+"="+socket)
	o.cmd.Stderr = os.Stderr
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if o.input, err = o.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	o.output = bufio.NewScanner(output)
	return o, o.cmd.Start()
}

// takeMeasured returns what was measured since its last call.
func (o *observer) takeMeasured() (m measured, err error) {
	if _, err := io.WriteString(o.input, "\n"); err != nil {
		return m, fmt.Errorf("ask the other caller: %w", err)
	}
	if !o.output.Scan() {
		return m, fmt.Errorf("the other caller does not answer: %w", errors.Join(o.output.Err(), io.ErrUnexpectedEOF))
	}
	return m, json.Unmarshal(o.output.Bytes(), &m)
}

func (o *observer) stop() error { return errors.Join(o.input.Close(), o.cmd.Wait()) }

// servedAsCaller runs the other caller, if this process is the other caller. For each line
// of the input it writes what it has measured since the last line. It returns when the
// input ends.
func servedAsCaller() bool {
	socket := os.Getenv(callerVariable)
	if socket == "" {
		return false
	}
	r := &recorder{}
	go r.callAgainAndAgain(socket)
	go r.callAnew(socket)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		text, err := json.Marshal(r.take())
		if err != nil {
			fmt.Fprintln(os.Stderr, "attack:", err)
			break
		}
		fmt.Println(string(text))
	}
	return true
}

// recorder collects the times of calls.
type recorder struct {
	mu    sync.Mutex
	m     measured
	times []time.Duration
	begun time.Time // of the present call
}

// take returns the measurements and clears them. If the present call takes longer than all
// others, it counts with its time so far.
func (r *recorder) take() measured {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.m
	slices.Sort(r.times)
	if n := len(r.times); n > 0 {
		m.P50, m.P99, m.Max = r.times[n/2], r.times[n*99/100], r.times[n-1]
	}
	if !r.begun.IsZero() {
		m.Max = max(m.Max, time.Since(r.begun))
	}
	m.Calls = len(r.times)
	r.m, r.times = measured{}, r.times[:0]
	return m
}

func (r *recorder) callAgainAndAgain(socket string) {
	conn, err := dial(socket)
	if err != nil {
		r.failed(err)
		return
	}
	for {
		began := time.Now()
		r.mu.Lock()
		r.begun = began
		r.mu.Unlock()
		err := smallHash(context.Background(), conn)
		r.mu.Lock()
		r.times = append(r.times, time.Since(began))
		if err != nil {
			r.m.Errors++
			r.note(err)
		}
		r.mu.Unlock()
		if err != nil {
			<-time.After(10 * time.Millisecond) // a broker that has ended fails at once, and a loop would take a processor
		}
	}
}

// callAnew makes calls on new connections, as probes and new clients do.
func (r *recorder) callAnew(socket string) {
	for range time.Tick(freshInterval) {
		began := time.Now()
		conn, err := dial(socket)
		if err == nil {
			err = errors.Join(smallHash(context.Background(), conn), conn.Close())
		}
		r.mu.Lock()
		r.m.Fresh++
		r.m.FreshMax = max(r.m.FreshMax, time.Since(began))
		if err != nil {
			r.m.FreshErrors++
			r.note(fmt.Errorf("by a new connection: %w", err))
		}
		r.mu.Unlock()
	}
}

func (r *recorder) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m.Errors++
	r.note(err)
}

// note keeps the first error. The caller of note holds the lock.
func (r *recorder) note(err error) {
	if r.m.Error == "" {
		r.m.Error = err.Error()
	}
}

func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// smallHash makes a call of the kind that most callers make.
func smallHash(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := v1.NewCryptoServiceClient(conn).HashData(ctx, &v1.HashDataRequest{Profile: "Default", Input: []byte("32 bytes of input, more or less.")})
	return err
}
