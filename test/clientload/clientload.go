// SPDX-License-Identifier: Apache-2.0

// Package clientload lets the clients of this repository put load on a broker, each with its program in test/contract/drivers. The
// only thing it knows about each language is how to start the program.
package clientload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The ways of calls: by the client of gRPC of the language, by our client with unary calls, and by our
// client with Exchange.
const (
	Bare     = "bare"
	Unary    = "unary"
	Exchange = "exchange"
)

// The operations of a load. Health is no operation of Exchange.
const (
	HashData = "HashData"
	Health   = "Health"
)

// patience is how much longer than its load a program may take to answer. It covers the start, which compiles the program the first
// time, and calls that wait for a broker.
const patience = 10 * time.Minute

// Load is what the callers of a program do: each begins its next call when it has its reply.
type Load struct {
	Way       string `json:"way"`
	Operation string `json:"operation"`
	Callers   int    `json:"callers"`
	Millis    int64  `json:"millis"`
}

// Measured has the results of a program. Times are in microseconds.
type Measured struct {
	Done   int `json:"done"`
	Failed int `json:"failed"`
	// Error is the error of one call that failed.
	Error     string  `json:"error"`
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
}

// Program is a running program that makes loads.
type Program struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Scanner
	stderr bytes.Buffer
}

// Clients returns the names of all clients, sorted.
func Clients(repository string) ([]string, error) {
	programs, err := filepath.Glob(filepath.Join(drivers(repository), "*", "run"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range programs {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("found no programs in %s", drivers(repository))
	}
	return names, nil
}

func drivers(repository string) string {
	return filepath.Join(repository, "test", "contract", "drivers")
}

// Start starts the program of a client for the broker at a socket. The program ends with the context. Optimized compiles it like a
// release, which takes longer.
func Start(ctx context.Context, repository, client, socket string, optimized bool) (*Program, error) {
	arguments := []string{"--load"}
	if optimized {
		arguments = append(arguments, "--optimized")
	}
	p := &Program{cmd: exec.CommandContext(ctx, filepath.Join(drivers(repository), client, "run"), arguments...)}
	p.cmd.Env = append(os.Environ(), "CRYPTO_BROKER_SOCKET="+socket)
	p.cmd.Stderr = &p.stderr
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.output = bufio.NewScanner(output)
	return p, p.cmd.Start()
}

// Make makes a load and returns what the program has measured.
func (p *Program) Make(l Load) (Measured, error) {
	line, err := json.Marshal(l)
	if err != nil {
		return Measured{}, err
	}
	late := time.AfterFunc(patience+time.Duration(l.Millis)*time.Millisecond, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if _, err := p.input.Write(append(line, '\n')); err != nil {
		return Measured{}, p.broken(err)
	}
	if !p.output.Scan() {
		return Measured{}, p.broken(errors.Join(p.output.Err(), errors.New("the program wrote no answer")))
	}
	var m Measured
	if err := json.Unmarshal(p.output.Bytes(), &m); err != nil {
		return Measured{}, fmt.Errorf("the program wrote %.200q: %w", p.output.Bytes(), err)
	}
	return m, nil
}

// broken returns an error with what the program has written to standard error, and ends the program.
func (p *Program) broken(err error) error {
	return fmt.Errorf("%w\n%w\n%s", err, errors.Join(p.cmd.Process.Kill(), p.cmd.Wait()), &p.stderr)
}

// Close ends the program in order.
func (p *Program) Close() error {
	if err := p.input.Close(); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the program ended with %w\n%s", err, &p.stderr)
	}
	return nil
}
